"""Views and serializers of workflow executions: start, search, control, retry and rerun."""
