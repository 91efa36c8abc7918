"""Pages of integrations, prompts, budgets, usage and indexes of vectors."""
