"""URL patterns of the services."""
