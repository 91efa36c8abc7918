"""Events: what came in and what became of it, who listens, replays, webhooks."""
