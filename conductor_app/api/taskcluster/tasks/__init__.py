"""Views and serializers of tasks, their runs, claims and task groups."""
