"""Commands on integrations, prompts, budgets, calls of models and indexes of vectors."""
