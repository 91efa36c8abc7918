"""Events: deliveries and their results, event handlers, replays, webhooks."""
