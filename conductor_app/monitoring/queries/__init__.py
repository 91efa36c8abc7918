"""Queries about the health, the load and the configuration of the server."""
