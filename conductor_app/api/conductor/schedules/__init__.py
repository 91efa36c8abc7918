"""Views and serializers of schedules and their executions."""
