"""The name of `conductor_access_key` on a server."""

from conductor_app.management.commands.conductor_access_key import Command

__all__ = ["Command"]
