"""The HTTP APIs: one package per API."""
