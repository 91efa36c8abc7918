"""AI: integrations with providers of models, prompts, calls of models, budgets."""
