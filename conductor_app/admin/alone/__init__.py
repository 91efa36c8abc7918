"""Stand-alone tasks: Taskcluster's, with what their workers kept."""
