"""Events, event handlers and webhooks: intake, matching, actions, replays, and the outbox of event sinks."""
