"""Views and serializers of requests that act on many workflow executions."""
