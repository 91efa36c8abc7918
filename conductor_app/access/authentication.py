"""Authentication of requests, the actor on whose behalf a request or job runs, and what an actor may do."""

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TypeVar
from urllib.parse import urlsplit

from django.contrib.auth import get_user_model
from django.db.models import Model
from django.http import HttpRequest
from django.urls import get_script_prefix
from rest_framework.authentication import CSRFCheck

from ..core.errors import Forbidden, Unauthenticated
from ..core.step_types.base import task_type_of
from ..db.fields import UserKey, user_key, users_have_numbers
from ..settings import conf
from . import tokens
from .permissions import (
    ALL_PERMISSIONS,
    DOMAIN,
    NO_PERMISSIONS,
    RUN_VIEW_RIGHTS,
    TASK_DEF,
    WORKER_RIGHTS,
    WORKFLOW,
    WORKFLOW_DEF,
    PermissionSet,
    Right,
    find_key_holder,
    permission_set_of,
)

Target = Mapping[str, str]
"""The names of one object, by target type: a run has a WORKFLOW id and the name of its WORKFLOW_DEF."""
RowT = TypeVar("RowT", bound=Model)


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


def reject_cross_site_requests(request: HttpRequest) -> None:
    """Refuse a request of a page of another site. Client libraries do not send the headers that identify it.

    Raises:
        Forbidden: when a page of another site has sent the request.
    """
    origin = request.META.get("HTTP_ORIGIN")
    is_foreign = request.META.get("HTTP_SEC_FETCH_SITE") == "cross-site" or (
        origin and _network_location(origin) != request.get_host()
    )
    if is_foreign:
        raise Forbidden("Requests from pages of other sites are not allowed.")


def _network_location(origin: str) -> str | None:
    """Return host and port of an origin, or None if it is not an address. Browsers send only addresses and `null`."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Actor:
    """The authenticated caller: an application, a user, or any caller of a server without authentication.

    `is_person`: True if it has signed in in a browser.
    """

    name: str
    permissions: PermissionSet = NO_PERMISSIONS
    user_id: UserKey | None = None
    is_person: bool = False


OPEN_ACCESS_ACTOR = Actor("anonymous", ALL_PERMISSIONS)


def authenticate(request: HttpRequest, *, changes_state: bool = False) -> Actor:
    """Return the caller of a request.

    `changes_state`: the operation changes something although its method is GET, as in Conductor's API. A browser
    session needs a CSRF token for it, because browsers send cookies when the user follows a link of another site.

    Raises:
        Unauthenticated: when the credentials are missing or invalid
        Forbidden: when a page of another site sends the request.
    """
    if conf.api_access == "open":
        reject_cross_site_requests(request)
        return OPEN_ACCESS_ACTOR
    if token := request.META.get("HTTP_X_AUTHORIZATION"):
        return authenticate_token(token)
    return _authenticate_session(request, changes_state=changes_state)


def authenticate_token(token: str) -> Actor:
    """Return the application of a token."""
    holder = find_key_holder(tokens.verify_token(token))
    if holder is None:
        raise Unauthenticated("The key of this token is no longer valid.", code="INVALID_TOKEN")
    return Actor(holder.name, permission_set_of(holder.user_id), user_key(holder.user_id))


def _authenticate_session(request: HttpRequest, *, changes_state: bool) -> Actor:
    """Return the user of a browser session, with CSRF protection."""
    user = getattr(request, "user", None)
    if user is None or not (user.is_active and user.is_staff):
        raise Unauthenticated("The header X-Authorization with a token is required.", code="INVALID_TOKEN")
    reject_cross_site_requests(request)
    _require_csrf_token(request, is_required=changes_state)
    return Actor(user.get_username(), permission_set_of(user.pk), user_key(user.pk), is_person=True)


def _require_csrf_token(request: HttpRequest, *, is_required: bool) -> None:
    """Check the CSRF token of a request. `is_required`: check it for GET as well."""
    check = CSRFCheck(lambda request: None)
    check.process_request(request)
    method = request.method
    try:
        if is_required:
            request.method = "POST"
        reason = check.process_view(request, None, (), {})
    finally:
        request.method = method
    if reason:
        raise Forbidden(f"CSRF Failed: {reason}")


_current: ContextVar[Callable[[], Actor] | None] = ContextVar("actor", default=None)


def current_actor() -> Actor | None:
    """Return the current actor. None: the engine itself, which acts on decisions that were authorized before."""
    find_actor = _current.get()
    return find_actor() if find_actor else None


def current_user_id() -> UserKey:
    """Return the user of the current actor, 0 or "" if it has none: the engine, and callers without authentication."""
    actor = current_actor()
    return (actor and actor.user_id) or (0 if users_have_numbers() else "")


@contextmanager
def acting_as(find_actor: Callable[[], Actor] | None) -> Iterator[None]:
    """Run the block on behalf of an actor, which is looked up only if a command needs it."""
    token = _current.set(find_actor)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def acting_as_owner(user_id: UserKey) -> Iterator[None]:
    """Run the block on behalf of the owner of a schedule, an event handler or a webhook. 0 or "": without limits."""
    with acting_as(cache(lambda: actor_of_user(user_id)) if user_id else None):
        yield


def actor_of_user(user_id: UserKey) -> Actor:
    """Return the actor of a user: a person, or an application's own user. A deleted user has no permissions."""
    user = get_user_model()._default_manager.filter(pk=user_id).select_related("application").first()
    if user is None:
        return Actor("a deleted user", user_id=user_id)
    application = getattr(user, "application", None)
    name = application.name if application else user.get_username()
    return Actor(name, permission_set_of(user_id), user_id)


def task_target(queue: str, domain: str, name: str, run_id: str, definition: str) -> Target:
    """Return the target of a task: its queue, or its name if it has none, its domain, its run, and its definition."""
    target = {TASK_DEF: task_type_of(queue, domain) or name, WORKFLOW: run_id, WORKFLOW_DEF: definition}
    return target | {DOMAIN: domain} if domain else target


def is_allowed(actor: Actor, rights: Iterable[Right], target: Target) -> bool:
    """Return True if the actor has one of these rights on the target."""
    return any(
        actor.permissions.allows(access, target_type, target[target_type])
        for access, target_type in rights
        if target_type in target
    )


def may_claim(actor: Actor, queue: str, domain: str) -> bool:
    """Return True if the actor may claim the tasks of a queue: people receive no tasks."""
    return not actor.is_person and is_allowed(actor, WORKER_RIGHTS, task_target(queue, domain, "", "", ""))


def require_permission(actor: Actor, rights: Iterable[Right], targets: Iterable[Target]) -> None:
    """Raise Forbidden unless the actor has one of these rights on all targets."""
    rights = tuple(rights)
    for target in targets:
        if not is_allowed(actor, rights, target):
            raise missing_permission_error(actor, rights, target)


def missing_permission_error(actor: Actor, rights: Iterable[Right], target: Target) -> Forbidden:
    """Return the error that names the missing permission and its target.

    A caller that may not read a run does not learn more about it than the id of the request.
    """
    if WORKFLOW in target and not is_allowed(actor, RUN_VIEW_RIGHTS, target):
        missing = " or ".join(f"{access} on its {target_type}" for access, target_type in rights)
        return Forbidden(f"{actor.name} lacks the permission on this run: {missing}.", code="FORBIDDEN")
    missing = " or ".join(
        f"{access} on {target_type} {_quote_name(target.get(target_type))}" for access, target_type in rights
    )
    return Forbidden(f"{actor.name} lacks the permission {missing}.", code="FORBIDDEN")


def _quote_name(name: str | None) -> str:
    return f"'{name[:200]}'" if name else "(all)"
