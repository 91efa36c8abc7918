"""Queries about schedules: calendar and forecast."""
