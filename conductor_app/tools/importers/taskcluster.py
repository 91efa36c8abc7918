"""Taskcluster's roles and clients: how each is parsed, compared with what is here, and saved."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from conductor_app.api.taskcluster.errors import InputValidationError
from conductor_app.api.taskcluster.timestamps import parse_timestamp
from conductor_app.core.errors import Invalid
from conductor_app.engine.access import clients, scope_roles
from conductor_app.engine.access.clients import ClientSettings
from conductor_app.engine.definitions.definition_kinds import (
    DefinitionKind,
    Document,
    PlanContext,
    PlannedObject,
    describe_elements,
)
from conductor_app.models import Client, ScopeRole


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
