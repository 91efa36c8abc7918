"""Read-only queries and texts for the pages and the API."""
