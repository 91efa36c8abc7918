"""Groups of stand-alone tasks as people look at them: who is in them, how far they are, what held them up.

members.py    the tasks of a group with their attempts, narrow, in two queries      tallies.py   counts by state
edges.py      what depends on what                                                  critical.py  the longest chain
kinds.py      tasks alike, of which a large group shows one                         layers.py    places in a picture
"""
