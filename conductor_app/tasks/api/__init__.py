"""Endpoints of tasks and queues."""
