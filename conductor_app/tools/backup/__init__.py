"""Backups of the database and the payloads in one archive, which restores into SQLite and PostgreSQL."""
