"""The built-in workers of AI tasks. The libraries of providers are imported at the first task."""
