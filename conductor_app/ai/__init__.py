"""Integrations with providers of models, prompts, calls, budgets and indexes of vectors."""
