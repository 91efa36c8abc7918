"""Pages that repair runs: the planner for one run, one action on selected runs, bulk operations."""
