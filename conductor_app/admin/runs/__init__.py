"""Pages of runs: the list, one run, its history, the comparison of two runs, and retention."""
