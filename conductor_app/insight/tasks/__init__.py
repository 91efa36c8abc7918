"""Queries about tasks of runs: waits, input provenance, logs, and human tasks."""
