"""Queries about queues, gates and workers."""
