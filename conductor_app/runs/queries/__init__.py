"""Queries about runs: cause, history, comparison, recent runs, retention."""
