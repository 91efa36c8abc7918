"""Commands on users, groups, roles, applications, grants and secrets."""
