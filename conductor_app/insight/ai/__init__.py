"""AI: integrations, prompts, calls of models with their usage and budgets, and indexes of vectors."""
