"""AI steps: calls of models, their usage, budgets, and indexes of vectors."""
