"""Runs: found in a list, understood on their page, task by task, compared."""
