"""Query parameters of a run's page. The address is a permalink: it shows the same view to every user."""

from typing import ClassVar

from ..page_query import PageQuery

LOG_PARAMETERS = ("find", "log", "line")
"""Parameters of the log of one attempt. Selecting another task or attempt removes them."""
RUN_PARAMETERS = (
    "tab",
    "task",
    "attempt",
    "only",
    "status",
    "from",
    "to",
    "children",
    "critical",
    "open",
    "shut",
    "revision",
    "iteration",
    "expression",
)


class RunPageQuery(PageQuery):
    """Query parameters of a run's page."""

    parameters: ClassVar[tuple[str, ...]] = RUN_PARAMETERS + LOG_PARAMETERS

    def address(self, **changed: str | int | None) -> str:
        """Return the address of the page with changed parameters. Another task or attempt drops those of the log."""
        removed = dict.fromkeys(LOG_PARAMETERS) if changed.keys() & {"task", "attempt"} else {}
        return super().address(**{**removed, **changed})
