"""Schedules: definitions of when runs start."""
