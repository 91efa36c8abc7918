"""Views and serializers of queues."""
