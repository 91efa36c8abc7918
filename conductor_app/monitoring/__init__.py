"""Overview, health, metrics and the state of the server."""
