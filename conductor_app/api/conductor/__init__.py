"""Speaks Conductor and nothing else: in here a run is called a workflow."""
