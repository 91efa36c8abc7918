"""Pages of events, event handlers and webhooks."""
