"""Views and serializers of the state of the server."""
