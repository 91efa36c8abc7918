"""Alerts, their targets and the saved views that they watch."""
