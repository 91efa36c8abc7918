"""Schedules, their slots and their calendar."""
