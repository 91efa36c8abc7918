"""Pages of queues and workers, and the explanation of why a task waits."""
