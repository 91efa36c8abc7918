"""Endpoints of users, groups, applications, permissions, secrets and variables."""
