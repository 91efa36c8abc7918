"""Queries about definitions: catalogs, completions, versions, simulation reports and diagrams."""
