"""Pages of tasks: attempts, the panel and the log of one task, and human tasks."""
