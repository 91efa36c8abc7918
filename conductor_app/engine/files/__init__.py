"""Files of runs, uploaded whole or in parts. Inputs and outputs refer to them by handles."""
