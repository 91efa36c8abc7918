"""Payloads and files outside the database."""
