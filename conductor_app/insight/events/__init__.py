"""Queries about events, event sources, handlers and webhooks."""
