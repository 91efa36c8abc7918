"""Pages of attempts, queues and workers, and the explanation of waits."""
