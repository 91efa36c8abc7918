"""Views and serializers of artifacts and objects."""
