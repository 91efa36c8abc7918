"""The actor on whose behalf a request or job runs. Commands check its permissions, however they are called."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.contrib.auth import get_user_model

from . import permission_cache
from .conductor_auth import Actor

_current: ContextVar[Callable[[], Actor] | None] = ContextVar("actor", default=None)


def current_actor() -> Actor | None:
    """Return the current actor. None: the engine itself, which acts on decisions that were authorized before."""
    find_actor = _current.get()
    return find_actor() if find_actor else None


def current_user_id() -> int:
    """Return the user of the current actor, 0 if it has none: the engine, and callers without authentication."""
    actor = current_actor()
    return (actor.user_id or 0) if actor else 0


@contextmanager
def acting_as(find_actor: Callable[[], Actor] | None) -> Iterator[None]:
    """Run the block on behalf of an actor, which is looked up only if a command needs it."""
    token = _current.set(find_actor)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def acting_as_owner(user_id: int) -> Iterator[None]:
    """Run the block on behalf of the owner of a schedule, an event handler or a webhook. 0: without limits."""
    with acting_as((lambda: actor_of_user(user_id)) if user_id else None):
        yield


def actor_of_user(user_id: int) -> Actor:
    """Return the actor of a user: a person, or an application's own user. A deleted user has no permissions."""
    user = get_user_model().objects.filter(pk=user_id).select_related("application").first()
    if user is None:
        return Actor("a deleted user", user_id=user_id)
    application = getattr(user, "application", None)
    name = application.name if application else user.get_username()
    return Actor(name, permission_cache.permission_set_of(user_id), user_id)
