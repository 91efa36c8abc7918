"""Views and serializers of the state and the administration of the server."""
