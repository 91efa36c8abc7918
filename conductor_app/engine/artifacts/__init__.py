"""Commands on artifacts: the entries of a task's attempts, and their content."""
