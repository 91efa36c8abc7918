"""Processes that publish and consume events."""
