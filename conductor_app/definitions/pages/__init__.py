"""Pages of workflow and task definitions."""
