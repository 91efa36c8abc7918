"""Failure groups, the failure inbox and alerts."""
