"""Commands on applications, clients, users, groups, roles and grants. Each writes an audit entry."""
