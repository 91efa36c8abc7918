"""Tasks of runs: queues, gates, claims, polls, reports, limits, workers, logs."""
