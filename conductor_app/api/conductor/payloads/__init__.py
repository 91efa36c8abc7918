"""Views and serializers of external payloads and files."""
