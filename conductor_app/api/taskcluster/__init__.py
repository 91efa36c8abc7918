"""The wire as Taskcluster speaks it: its Queue service."""
