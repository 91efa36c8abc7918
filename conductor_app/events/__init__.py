"""Events, event handlers, webhooks, sinks and publishers."""
