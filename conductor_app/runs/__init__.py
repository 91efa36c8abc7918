"""Runs: executions of workflows."""
