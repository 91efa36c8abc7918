"""Failure groups."""
