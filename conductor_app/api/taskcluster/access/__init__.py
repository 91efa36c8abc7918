"""Views and serializers of clients, roles and scopes."""
