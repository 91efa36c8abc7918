"""Views and serializers of task queues and workers."""
