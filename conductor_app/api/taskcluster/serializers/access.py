"""Clients and roles ⇄ Taskcluster's documents. No document has an access token but the reply that tells it."""

from typing import Any

from ....access.clients import expanded
from ....engine.access.clients import Wanted
from ....insight.standalone import moment
from ....models import Client, ScopeRole
from ..moments import milliseconds


def client_document(row: Client) -> dict[str, Any]:
    """A client as it is shown."""
    return {
        "clientId": row.id,
        "expires": moment(row.expires_at),
        "created": moment(row.created_at),
        "lastModified": moment(row.updated_at),
        # One that was never used has a moment all the same.
        "lastDateUsed": moment(row.used_at or row.created_at),
        "lastRotated": moment(row.rotated_at),
        "description": row.description,
        "scopes": row.scopes,
        "expandedScopes": expanded(row.scopes),
        "disabled": row.is_disabled,
        "deleteOnExpiration": row.is_deleted_when_expired,
    }


def with_token(row: Client, token: str) -> dict[str, Any]:
    """The reply that tells a client's access token."""
    return {**client_document(row), "accessToken": token}


def wanted(document: dict[str, Any], scopes: list[str]) -> Wanted:
    """What a document asks a client to be."""
    expires_at = milliseconds(document["expires"], "expires")
    return Wanted(scopes, expires_at, document["description"], document["deleteOnExpiration"])


def role_document(row: ScopeRole) -> dict[str, Any]:
    """A role as it is shown."""
    return {
        "roleId": row.id,
        "scopes": row.scopes,
        "description": row.description,
        "created": moment(row.created_at),
        "lastModified": moment(row.updated_at),
        "expandedScopes": expanded(row.scopes),
    }
