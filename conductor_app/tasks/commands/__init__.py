"""Commands on attempts and queues, and the records of pollers and throughput."""
