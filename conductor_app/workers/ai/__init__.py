"""Built-in workers that call models."""
