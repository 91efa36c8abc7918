"""Pages of failure groups."""
