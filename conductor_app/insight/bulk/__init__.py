"""Queries about bulk operations and the selections of runs that they apply to."""
