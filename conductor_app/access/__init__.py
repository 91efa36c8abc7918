"""Who may: actors and how they show who they are, tokens, keys, and secrets that only a worker is told."""
