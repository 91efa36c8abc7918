"""The wire: one folder a dialect."""
