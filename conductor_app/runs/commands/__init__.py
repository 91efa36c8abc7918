"""Commands on runs: start, control, change, repair, remove."""
