"""The import of roles and clients from a Taskcluster deployment, read with the official client."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...access.models import Client
from ...core.errors import Invalid, RequestRefused
from ...definitions.sources.kinds import DefinitionKind, Document, PlanContext, PlannedObject, describe_elements
from ...settings import conf
from ...taskcluster.api.base import InputValidationError, parse_timestamp
from ...taskcluster.auth import commands as clients
from ...taskcluster.auth import commands as scope_roles
from ...taskcluster.auth.commands import ClientSettings
from ...taskcluster.auth.scopes import expand_scopes
from ...taskcluster.models import ScopeRole
from ...utils import clock
from .plan import CompatibilityFinding, ImportPlan, PlannedItem, Verdict
from .source import AccessDenied, NotOffered, SourceError

MAX_PAGES = 10_000
PAGE_SIZE = 1_000
MISSING_PACKAGE = (
    "The official client of Taskcluster is not installed. Install it with `pip install 'conductor-app[taskcluster]'`."
)


class TaskclusterSource:
    """A deployment. Its methods only read."""

    def __init__(self, root_url: str, credentials: Mapping[str, str], retries: int = 5) -> None:
        """Prepare the client. Nothing is sent.

        Raises:
            SourceError: when the address is invalid, or the client is not installed.
        """
        try:
            import taskcluster
        except ImportError:
            raise SourceError(MISSING_PACKAGE) from None
        self.url = root_address(root_url)
        self._failure = taskcluster.exceptions.TaskclusterFailure
        options = {"rootUrl": self.url, "maxRetries": retries}
        options |= {"credentials": dict(credentials)} if credentials else {}
        self._auth, self._queue = taskcluster.Auth(options), taskcluster.Queue(options)

    def roles(self) -> Iterator[dict[str, Any]]:
        """Yield all roles.

        Raises:
            SourceError: when they cannot be read.
        """
        return self._pages(self._auth.listRoles2, "roles", "auth:list-roles")

    def clients(self, prefix: str = "") -> Iterator[dict[str, Any]]:
        """Yield the clients whose ids begin with a prefix.

        Raises:
            SourceError: when they cannot be read.
        """
        query = {"prefix": prefix} if prefix else {}
        return self._pages(self._auth.listClients, "clients", "auth:list-clients", **query)

    def queue_names(self) -> list[str]:
        """Return the names of the task queues that are in use.

        Raises:
            SourceError: when they cannot be read.
        """
        pages = self._pages(self._queue.listTaskQueues, "taskQueues", "queue:list-task-queues")
        return sorted({name for each in pages if isinstance(name := each.get("taskQueueId"), str)})

    def _pages(self, call: Callable[..., Any], part: str, scope: str, **query: str) -> Iterator[dict[str, Any]]:
        token, seen = "", set[str]()
        for _ in range(MAX_PAGES):
            page = self._read_page(
                call, scope, {"limit": str(PAGE_SIZE), **query, **({"continuationToken": token} if token else {})}
            )
            found = page.get(part) if isinstance(page, dict) else None
            if not isinstance(found, list):
                raise SourceError(f"{self.url} does not answer as Taskcluster does: its reply has no list {part!r}.")
            yield from (each for each in found if isinstance(each, dict))
            token = str(page.get("continuationToken") or "")
            if not token:
                return
            if token in seen:
                raise SourceError(f"{self.url} repeats a page of {part}.")
            seen.add(token)
        raise SourceError(f"{self.url} has more than {MAX_PAGES:,} pages of {part}.")

    def _read_page(self, call: Callable[..., Any], scope: str, query: dict[str, str]) -> Any:
        try:
            return call(query=query)
        except self._failure as error:
            status = getattr(error, "status_code", None)
            first = str(error).strip().partition("\n")[0][:300]
            if status in (401, 403):
                raise AccessDenied(
                    f"{self.url} refuses the credentials, which need the scope {scope}. {first}"
                ) from None
            if status in (404, 405):
                raise NotOffered(f"{self.url} is not a Taskcluster deployment (status {status}).") from None
            raise SourceError(f"{self.url} cannot be read: {first}") from None
        except (ValueError, OSError) as error:
            raise SourceError(f"{self.url} cannot be read: {error!s:.300}") from None


def root_address(url: str) -> str:
    """Return the root URL of a deployment.

    Raises:
        SourceError: when it is not an address of HTTP without a path.
    """
    try:
        parts = urlsplit(url.strip().rstrip("/"))
        host = parts.hostname
    except ValueError as error:
        raise SourceError(f"The address {url!r} is invalid: {error}.") from None
    if parts.scheme not in ("http", "https") or not host or parts.path or parts.query or parts.username:
        raise SourceError(f"The address must be a root URL such as https://tc.example.com (got {url!r}).")
    return f"{parts.scheme}://{parts.netloc}"


class ScopedKind(DefinitionKind):
    """A kind with scopes, whose changes are described one by one."""

    def changes(self, current: Document, wanted: Document) -> list[str]:
        scopes = describe_elements("scope", current["scopes"], wanted["scopes"])
        return [*scopes, *super().changes(_drop_scopes(current), _drop_scopes(wanted))]


class RoleKind(ScopedKind):
    """Roles. `accepted`: the scopes of the roles that the plan saves, because a role must not assume itself."""

    label, plural, name_field = "role", "roles", "roleId"

    def __init__(self) -> None:
        self.accepted: dict[str, Sequence[str]] = {}

    def parse(self, given: Document, context: PlanContext) -> PlannedObject:
        id, scopes, description = _text(given, "roleId"), _texts(given, "scopes"), _text(given, "description")
        scope_roles.check_role(id, scopes, description, self.accepted)
        return PlannedObject(id, {"scopes": sorted(set(scopes)), "description": description})

    def current(self, wanted: PlannedObject) -> Document | None:
        row = ScopeRole.objects.filter(pk=wanted.name).first()
        return None if row is None else {"scopes": row.scopes, "description": row.description}

    def save(self, wanted: PlannedObject, context: PlanContext, *, replaces: bool, new_version: bool) -> None:
        command = scope_roles.update_role if replaces else scope_roles.create_role
        document = wanted.document
        command(wanted.name, document["scopes"], document["description"], context.by, context.reason)


class ClientKind(ScopedKind):
    """Clients. Tokens cannot be read, so a new client has a new token.

    `keep_token`: stores it. Without it, the token is discarded, and the client is disabled until an operator resets it.
    """

    label, plural, name_field = "client", "clients", "clientId"

    def __init__(self, keep_token: Callable[[str, str], None] | None = None) -> None:
        self._keep_token = keep_token

    def parse(self, given: Document, context: PlanContext) -> PlannedObject:
        id, scopes, description = _text(given, "clientId"), _texts(given, "scopes"), _text(given, "description")
        try:
            expires_at = parse_timestamp(_text(given, "expires"), "expires")
        except InputValidationError:
            raise Invalid("expires must be a time with a time zone.") from None
        deletes = given.get("deleteOnExpiration") is True
        clients.check_client(id, ClientSettings(scopes, expires_at, description, deletes))
        document = {"scopes": sorted(set(scopes)), "expires": expires_at, "description": description}
        is_disabled = given.get("disabled") is True or self._keep_token is None
        return PlannedObject(id, document | {"deleteOnExpiration": deletes, "disabled": is_disabled})

    def current(self, wanted: PlannedObject) -> Document | None:
        row = Client.objects.filter(pk=wanted.name).first()
        if row is None:
            return None
        document = {"scopes": row.scopes, "expires": row.expires_at, "description": row.description}
        return document | {"deleteOnExpiration": row.is_deleted_when_expired}

    def comparable(self, document: Document) -> Document:
        # An operator enables a client here when its worker moves.
        return {name: value for name, value in document.items() if name != "disabled"}

    def save(self, wanted: PlannedObject, context: PlanContext, *, replaces: bool, new_version: bool) -> None:
        document = wanted.document
        settings = ClientSettings(
            document["scopes"],
            document["expires"],
            document["description"],
            document["deleteOnExpiration"],
            document["disabled"],
        )
        if replaces:
            clients.update_client(wanted.name, settings, context.by, context.reason)
            return
        _, token = clients.create_client(wanted.name, settings, context.by, context.reason)
        if self._keep_token:
            self._keep_token(wanted.name, token)


class TokenFile:
    """A new file that only its owner can read, with a line for each created client: its id and access token in JSON."""

    def __init__(self, path: str) -> None:
        """Create the file.

        Raises:
            OSError: when it exists, or cannot be created.
        """
        self.path = Path(path)
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8")

    def keep(self, client_id: str, token: str) -> None:
        """Write the token of a client to the disk."""
        self._file.write(json.dumps({"clientId": client_id, "accessToken": token}) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file, and delete it if it has no token."""
        self._file.close()
        if not self.path.stat().st_size:
            self.path.unlink()


def _drop_scopes(document: Document) -> Document:
    return {name: value for name, value in document.items() if name != "scopes"}


def _text(given: Document, field: str) -> str:
    value: Any = given.get(field, "")
    if not isinstance(value, str):
        raise Invalid(f"{field} must be a text.")
    return value


def _texts(given: Document, field: str) -> list[str]:
    value: Any = given.get(field)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Invalid(f"{field} must be a list of texts.")
    return value


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
