"""Workflow and task definitions, schemas and tags."""
