"""Queries about tasks, queues, gates and workers."""
