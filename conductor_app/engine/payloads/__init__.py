"""Payloads and files outside the database: upload, download, link, remove."""
