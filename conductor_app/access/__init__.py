"""Authentication and authorization: actors, tokens, keys, permissions, and secrets that only workers receive."""
