"""The timeline of a run: the tree of its tasks, and their times."""
