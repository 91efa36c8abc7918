"""Commands on applications, users, groups, roles and what is granted to them; each leaves a line in the audit."""
