"""Commands on events, event handlers and webhooks."""
