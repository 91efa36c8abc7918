"""Pages of schedules and their form."""
