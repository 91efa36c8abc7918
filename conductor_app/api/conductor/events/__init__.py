"""Views and serializers of event handlers, events, webhooks and the event queue."""
