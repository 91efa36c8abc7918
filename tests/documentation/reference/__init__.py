"""The generators of the pages of docs/reference. `make reference` executes them."""
