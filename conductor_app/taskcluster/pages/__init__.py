"""Pages of standalone tasks: task groups, tasks, artifacts and logs of Taskcluster's Queue API."""
