"""The tabs of an object's page: each has a name, a label, a template and a function that builds its context."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from django.http import HttpRequest

from .page_query import PageQuery


class ViewModel(Protocol):
    """Anything that a page with tabs shows."""

    @property
    def query(self) -> PageQuery:
        """Return the query parameters of the page."""


V = TypeVar("V", bound=ViewModel)


@dataclass(frozen=True, slots=True)
class PageTab(Generic[V]):
    """One tab. `permission`: what the user needs to see it; empty if everyone who sees the page may."""

    name: str
    label: Any
    template: str
    build_context: Callable[[V], dict[str, Any]]
    permission: str = ""

    def is_allowed(self, request: HttpRequest) -> bool:
        """Return True if the user may see the tab."""
        return not self.permission or request.user.has_perm(self.permission)


def tabs_context(tabs: Mapping[str, PageTab[V]], view_model: V, request: HttpRequest) -> dict[str, Any]:
    """Return the allowed tabs and the context of the selected one. The default is the first tab.

    The links to the tabs keep the other query parameters.
    """
    allowed = [tab for tab in tabs.values() if tab.is_allowed(request)]
    selected = next((tab for tab in allowed if tab.name == view_model.query["tab"]), next(iter(tabs.values())))
    links = [
        {"label": tab.label, "address": view_model.query.address(tab=tab.name, page=None), "is_chosen": tab is selected}
        for tab in allowed
    ]
    return {
        "tabs": links,
        "tab_template": selected.template,
        "tab": selected.name,
        **selected.build_context(view_model),
    }
