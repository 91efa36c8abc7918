"""Pages of failure groups: their list, and one group."""
