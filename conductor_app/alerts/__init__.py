"""Alerts, their targets, digests and the saved views that they watch."""
