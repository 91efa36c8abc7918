"""Failure groups and alerts."""
