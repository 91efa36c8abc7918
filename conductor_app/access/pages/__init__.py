"""Pages of users, applications, secrets, quotas and the audit log."""
