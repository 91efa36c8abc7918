"""Endpoints of integrations, prompts, usage and budgets."""
