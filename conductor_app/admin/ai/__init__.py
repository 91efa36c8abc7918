"""AI: integrations with their models, and prompts."""
