"""Django's PostgreSQL backend with connections that survive restarts and failovers of the server."""
