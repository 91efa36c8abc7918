"""Stand-alone tasks: what decides of a task that belongs to no run. A sibling of the rules for runs.

It shares their attempts, lives and ids. Its effects are fewer, and it asks no questions: one task is always read whole.
"""
