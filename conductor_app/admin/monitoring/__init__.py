"""Pages that monitor the engine: overview, failures, queues, workers, views and alerts, human tasks."""
