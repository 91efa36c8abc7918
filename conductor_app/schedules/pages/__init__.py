"""Pages of schedules, their form and their calendar."""
