"""Views and serializers of applications, users, groups, permissions, tokens, secrets and environment variables."""
