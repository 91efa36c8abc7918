"""Clients and roles as Taskcluster's documents. Only the response to a creation or a reset has an access token."""

from typing import Any

from ....access.clients import expand_scopes
from ....engine.access.clients import ClientSettings
from ....insight.standalone.task_status import format_timestamp
from ....models import Client, ScopeRole
from ..timestamps import parse_timestamp


def client_document(row: Client) -> dict[str, Any]:
    """Return a client without its access token."""
    return {
        "clientId": row.id,
        "expires": format_timestamp(row.expires_at),
        "created": format_timestamp(row.created_at),
        "lastModified": format_timestamp(row.updated_at),
        # A client that was never used has a time too.
        "lastDateUsed": format_timestamp(row.used_at or row.created_at),
        "lastRotated": format_timestamp(row.rotated_at),
        "description": row.description,
        "scopes": row.scopes,
        "expandedScopes": expand_scopes(row.scopes),
        "disabled": row.is_disabled,
        "deleteOnExpiration": row.is_deleted_when_expired,
    }


def client_with_token(row: Client, token: str) -> dict[str, Any]:
    """Return a client with its access token."""
    return {**client_document(row), "accessToken": token}


def parse_client(document: dict[str, Any], scopes: list[str]) -> ClientSettings:
    """Return the settings in a client's document."""
    expires_at = parse_timestamp(document["expires"], "expires")
    return ClientSettings(scopes, expires_at, document["description"], document["deleteOnExpiration"])


def role_document(row: ScopeRole) -> dict[str, Any]:
    """Return a role."""
    return {
        "roleId": row.id,
        "scopes": row.scopes,
        "description": row.description,
        "created": format_timestamp(row.created_at),
        "lastModified": format_timestamp(row.updated_at),
        "expandedScopes": expand_scopes(row.scopes),
    }
