"""Endpoints of event handlers, events and webhooks."""
