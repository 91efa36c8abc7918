"""Commands on runs: start, control, retry, rerun, remove; and the loop that executes one in a transaction."""
