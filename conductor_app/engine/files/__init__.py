"""Files of runs: whole or in parts, by handles that inputs and outputs name."""
