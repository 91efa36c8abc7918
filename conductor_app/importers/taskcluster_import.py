"""The import of roles and clients from a Taskcluster deployment, and the comparison of what they grant."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from conductor_app import clock, conf
from conductor_app.access.scope_roles import expand_scopes
from conductor_app.core.errors import RequestRefused
from conductor_app.engine.definitions.definition_kinds import DefinitionKind
from conductor_app.models import Client, ScopeRole

from .http_source import SourceError
from .import_plan import ImportPlan
from .planned_item import CompatibilityFinding, PlannedItem, Verdict
from .taskcluster_kinds import ClientKind, RoleKind
from .taskcluster_source import TaskclusterSource

SERVICE_PREFIX = "static/taskcluster/"
"""The clients of Taskcluster's own services."""
MAX_SHOWN = 5


class TaskclusterImport:
    """One import: call `read`, then use the plan and the notes."""

    def __init__(self, source: TaskclusterSource, plan: ImportPlan, roles: RoleKind, clients: ClientKind) -> None:
        self._source, self._plan, self._roles, self._clients = source, plan, roles, clients
        self._expanded: dict[tuple[str, str], Any] = {}
        self.notes: list[str] = []

    @property
    def kinds(self) -> tuple[DefinitionKind, ...]:
        return self._roles, self._clients

    def read(self, prefix: str = "") -> None:
        """Read the source, and plan its roles and clients. `prefix`: of the clients' ids.

        Raises:
            SourceError: when the source is not a deployment, refuses the caller, or cannot be reached.
        """
        for document in self._source.roles():
            item = self._add(self._roles, document)
            if item.changes_something:
                self._roles.accepted[item.name] = document["scopes"]
        for document in self._wanted_clients(prefix):
            self._add(self._clients, document)
        self._compare_expansions()
        self._add_notes()

    def _add(self, kind: DefinitionKind, document: dict[str, Any]) -> PlannedItem:
        text = json.dumps(document, ensure_ascii=True).encode()
        self._plan.add(kind, self._plan.spool.append(text))
        item = self._plan.items[-1]
        self._expanded[kind.label, item.name] = document.get("expandedScopes")
        return item

    def _wanted_clients(self, prefix: str) -> Iterator[dict[str, Any]]:
        """Yield the clients of the source, without those of its services and those that have expired."""
        own = expired = 0
        for document in self._source.clients(prefix):
            if str(document.get("clientId")).startswith(SERVICE_PREFIX):
                own += 1
            elif self._has_expired(document):
                expired += 1
            else:
                yield document
        if own:
            self.notes.append(f"Not imported: {own:,} clients of Taskcluster's own services ({SERVICE_PREFIX}*).")
        if expired:
            self.notes.append(f"Not imported: {expired:,} clients that have expired.")

    def _has_expired(self, document: dict[str, Any]) -> bool:
        try:
            return self._clients.parse(document, self._plan.context).document["expires"] <= clock.now()
        except RequestRefused:
            return False

    def _compare_expansions(self) -> None:
        """Add a finding to each object whose scopes would expand to others than they do in the source."""
        roles = {**dict(ScopeRole.objects.values_list("id", "scopes")), **self._roles.accepted}
        for item in self._plan.items:
            expected = self._expanded[item.kind, item.name]
            if item.verdict is not Verdict.INVALID and isinstance(expected, list):
                scopes = self._plan.spool.read(item.position)["scopes"]
                item.findings = tuple(_expansion_findings(scopes, roles, {str(each) for each in expected}))

    def _add_notes(self) -> None:
        creates_clients = any(item.kind == self._clients.label and item.changes_something for item in self._plan.items)
        if creates_clients and conf.api_access == "open" and not Client.objects.exists():
            self.notes.append(
                "Callers of the Taskcluster API need no credentials here yet. From the first client on, they do."
            )
        try:
            if names := self._source.queue_names():
                shown = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
                self.notes.append(f"Task queues of the source, which appear here with their first task: {shown}.")
        except SourceError:
            # Only for information: the caller may lack the scope.
            return


def _expansion_findings(
    scopes: Iterable[str], roles: dict[str, Any], expected: set[str]
) -> Iterator[CompatibilityFinding]:
    try:
        here = set(expand_scopes(scopes, roles))
    except RequestRefused as refused:
        yield CompatibilityFinding("", refused.message, True)
        return
    for words, found in (("fewer", expected - here), ("more", here - expected)):
        found = {each for each in found if not _is_satisfied(each, here if words == "fewer" else expected)}
        if found:
            shown = ", ".join(sorted(found)[:MAX_SHOWN]) + (
                f" and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
            )
            yield CompatibilityFinding("", f"grants {words} scopes here than in the source: {shown}")


def _is_satisfied(scope: str, scopes: set[str]) -> bool:
    """Return True if one of the scopes covers another one."""
    return any(scope.startswith(each[:-1]) for each in scopes if each.endswith("*")) or scope in scopes
