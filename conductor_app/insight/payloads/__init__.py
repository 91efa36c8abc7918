"""Queries about files of runs."""
