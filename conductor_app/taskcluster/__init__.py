"""Taskcluster's Queue, Auth and Object services on this engine."""
