"""Views and serializers of tasks: poll, update, log, and human tasks."""
