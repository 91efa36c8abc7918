"""Bulk operations: one action on many runs."""
