"""Commands on tasks of runs: claim, report, update, and the human tasks."""
