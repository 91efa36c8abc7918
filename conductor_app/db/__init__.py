"""The database: statements, batches, fields, replicas, leases. No module here knows a table of a capability."""
