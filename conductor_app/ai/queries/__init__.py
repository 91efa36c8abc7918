"""Queries about budgets, usage and indexes of vectors."""
