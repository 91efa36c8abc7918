"""Runs and attempts as Conductor's documents, for API replies and for the input of failure workflows."""
