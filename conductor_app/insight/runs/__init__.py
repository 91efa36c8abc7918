"""Queries about runs: cause of the current status, timeline, comparison, history, search and retention."""
