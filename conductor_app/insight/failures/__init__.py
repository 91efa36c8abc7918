"""Queries about failure groups and alerts."""
