"""Pages of runs: list, run, history, comparison, start."""
