"""Simulations of a definition in memory."""
