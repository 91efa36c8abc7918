"""Clients, scopes, roles and signatures of Taskcluster."""
