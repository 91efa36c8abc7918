"""Pages of standalone tasks: task groups, tasks, artifacts and logs of Taskcluster's Queue API.

groups.py            list of groups               group_page.py     one group: fragments and actions
group_view_model.py  header, progress, filters    group_tabs.py     tasks, audit log
group_pictures.py    timeline, diagram            group_actions.py  one action on many tasks, with a preview
progress.py          progress bar of a group

tasks.py             list of tasks                task_page.py      one task: fragments and actions
task_view_model.py   state, attempts              log.py            log of an attempt
artifacts.py         list of artifacts            artifact_links.py links to artifacts and who may open them

addresses.py         addresses of these pages     search.py         tasks and groups in the command palette
"""
