"""The built-in workers: HTTP, SQL, Kafka, events."""
