"""Endpoints of definitions, schemas, tags, simulations and folders of definitions."""
