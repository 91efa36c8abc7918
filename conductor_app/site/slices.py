"""The slices of the application, in the order of their imports. `docs/explanation/architecture.md` explains them.

A slice has all of a feature: its tables, queries, commands, endpoints and pages. Inside it, the roles import one
another from left to right: `models`, `store`, `queries`, `commands`, and then `serializers`, `api`, `pages`, `editor`,
`workers`. A module imports only slices to the left of its own. The last roles are above all slices, because nothing
below imports them. `tests/architecture/test_slices.py` reads this file.
"""

SLICES = (
    "utils",
    "settings",
    "core",
    "scripts",
    "db",
    "telemetry",
    "notifications",
    "access",
    "payloads",
    "definitions",
    "failures",
    "runs",
    "tasks",
    "explanations",
    "human_tasks",
    "bulk",
    "taskcluster",
    "events",
    "schedules",
    "alerts",
    "ai",
    "definitions.simulation",
    "definitions.sources",
    "monitoring",
)
"""The slices below the interfaces. A package inside a slice with a place of its own is named with a dot."""
INTERFACES = ("serializers", "api", "pages", "editor", "workers", "notifier", "urls", "wiring")
"""Roles whose modules may import every slice, and are imported by other interfaces and by `site` only."""
SHARED_INTERFACES = ("web", "system_tasks", "agents")
"""What interfaces have in common: base classes of views and pages, and the built-in workers."""
TOP = ("site", "processes", "in_process", "tools", "testing", "management", "server", "models", "migrations")
"""Packages that know all slices: the admin site, the processes of the server, the Python API for other Django projects,
command-line tools, the test kit and Django's lists."""
