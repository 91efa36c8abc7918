"""Programs beside the server: importers, backups, remote commands."""
