"""Execute one SQL statement on a configured database."""
