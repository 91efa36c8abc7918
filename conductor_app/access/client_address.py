"""The address of the client of a request, also behind proxies."""

import ipaddress

from django.http import HttpRequest
from django.urls import get_script_prefix

from .. import conf


def client_address(request: HttpRequest) -> str:
    """Return the address of the client, or "" if it is unknown.

    Proxies append the address of their client to X-Forwarded-For. The last entry that is not a trusted proxy is the
    client; entries before it may be invented by the client.
    """
    address = request.META.get("REMOTE_ADDR") or ""
    forwarded = [entry.strip() for entry in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",") if entry.strip()]
    while forwarded and _is_trusted_proxy(address):
        address = forwarded.pop()
    return address if _is_address(address) else ""


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_trusted_proxy(address: str) -> bool:
    if not _is_address(address):
        return False
    found = ipaddress.ip_address(address)
    return any(found in ipaddress.ip_network(network) for network in conf.trusted_proxies)


def server_address(request: HttpRequest) -> str:
    """Return the address of this server as the caller sees it, with the prefix of its paths, without a last slash."""
    return request.build_absolute_uri(get_script_prefix()).rstrip("/")
