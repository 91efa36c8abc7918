"""Checks of definitions before they are saved, and findings about those that are valid."""
