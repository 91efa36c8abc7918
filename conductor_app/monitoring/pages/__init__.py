"""Pages of the overview and of the system."""
