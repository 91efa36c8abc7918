"""AI: integrations with their models, prompts, tokens."""
