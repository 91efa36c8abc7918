"""The database: statements, batches, fields, snapshots, leases. No module here knows a table of a capability."""
