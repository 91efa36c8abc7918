"""Commands on queues, and records of pollers and throughput."""
