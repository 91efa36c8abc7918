"""Queries about standalone tasks and task groups."""
