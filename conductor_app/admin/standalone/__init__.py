"""Stand-alone tasks: Taskcluster's, in groups, with what their workers kept.

groups.py        the list of groups           group_page.py     one group: parts that follow it, and its answers
group_story.py   what is told on every tab    group_tabs.py     tasks, audit   group_pictures.py   timeline, diagram
group_acts.py    one act on many, looked at before it is done   progress.py    how far a group is, as a bar

tasks.py         the list of tasks            task_page.py      one task: parts that follow it, and its buttons
task_story.py    why it waits, its attempts   log.py            the log of an attempt
artifacts.py     the list of artifacts        kept.py           who may read which of them

addresses.py     where these pages are        found.py          tasks and groups in the palette
"""
