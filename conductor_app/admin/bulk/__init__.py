"""Fixing: the plan of a rerun, one action on many runs, operations worked off at a rate."""
