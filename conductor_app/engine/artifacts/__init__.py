"""Commands on artifacts: the entries of a task's attempts, and the content that goes with some of them."""
