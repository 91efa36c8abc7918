"""Queries about callers: the use of their quotas."""
