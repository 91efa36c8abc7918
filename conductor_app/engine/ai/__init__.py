"""Calls of models: integrations, prompts, the journal of calls, usage and budgets."""
