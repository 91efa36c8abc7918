"""Users, applications, keys, grants, secrets, quotas and the audit log: who may do what."""
