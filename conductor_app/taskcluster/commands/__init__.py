"""Commands on standalone tasks, task groups and artifacts."""
