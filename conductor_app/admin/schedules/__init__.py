"""Schedules: when runs start by the clock."""
