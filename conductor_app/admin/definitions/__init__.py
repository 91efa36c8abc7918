"""Definitions: written, checked, compared, tried in the simulator, started by hand."""
