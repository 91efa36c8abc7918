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


ID_SEPARATOR = "~"
"""Stands between the ids in the parameters `open` and `shut`."""
MAX_TOGGLED = 60


class RunPageQuery(PageQuery):
    """Query parameters of a run's page."""

    parameters: ClassVar[tuple[str, ...]] = RUN_PARAMETERS + LOG_PARAMETERS

    def address(self, **changed: str | int | None) -> str:
        """Return the address of the page with changed parameters. Another task or attempt drops those of the log."""
        removed = dict.fromkeys(LOG_PARAMETERS) if changed.keys() & {"task", "attempt"} else {}
        return super().address(**{**removed, **changed})

    def node_ids(self, name: str) -> list[str]:
        """Return the ids of nodes in the parameter `open` or `shut`."""
        return [id for id in self[name].split(ID_SEPARATOR) if id]

    def fold_address(self, id: str, is_open: bool, **changed: str | int | None) -> str:
        """Return the address that closes an open node of the tree, or opens a closed one."""
        ids = {name: [each for each in self.node_ids(name) if each != id] for name in ("open", "shut")}
        ids["shut" if is_open else "open"].append(id)
        joined = {name: ID_SEPARATOR.join(each[-MAX_TOGGLED:]) for name, each in ids.items()}
        return self.address(**joined, **changed)

    def fold_summary_address(self, id: str, is_open: bool, **changed: str | int | None) -> str:
        """Return the address that opens or closes a summary of similar nodes, which is closed unless it is opened."""
        if not is_open:
            return self.fold_address(id, is_open, **changed)
        opened = [each for each in self.node_ids("open") if each != id]
        return self.address(open=ID_SEPARATOR.join(opened), **changed)
