"""Pages of runs: the list, one run, its tasks and attempts, the comparison of two runs."""
