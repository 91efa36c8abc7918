"""Taskcluster's documents ⇄ our values."""
