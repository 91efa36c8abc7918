"""Task groups for the pages: their tasks, progress, critical path, timeline and diagram.

members        tasks of a group with their attempts, in two queries
progress       counts by state
graph          dependencies between the tasks
critical       the longest chain of dependent tasks
name_patterns  grouping of similar tasks in large groups
bars, picture  timeline and diagram
"""
