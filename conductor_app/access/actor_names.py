"""The names of users and applications, which the audit log, runs and human tasks show as the actor.

A name stands for one actor: no application has the name of a user. Names that only differ in case, in the form of
their characters or in invisible characters count as the same. Several applications may share a name.
"""

import unicodedata

from django.contrib.auth import get_user_model
from django.db.models import QuerySet

from ..core.errors import Conflict
from .models import Application

INVISIBLE = ("Cc", "Cf")
"""Unicode's categories of characters that no page shows, such as the zero-width space."""


def comparable_name(name: str) -> str:
    """Return the form of a name in which names that look the same are equal."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return "".join(each for each in folded if unicodedata.category(each) not in INVISIBLE).strip()


def require_free_user_name(name: str, user_id: int = 0) -> None:
    """Check that no other user and no application has this name. `user_id`: the user itself, if it exists.

    Raises:
        Conflict: when it is taken.
    """
    if _is_in(name, get_user_model().objects.exclude(pk=user_id).values_list("username", flat=True)):
        raise Conflict(f"Another user has the name {name[:200]}. Upper and lower case count as the same.")
    if _is_in(name, Application.objects.values_list("name", flat=True)):
        raise Conflict(f"An application has the name {name[:200]}. Rename the application first.")


def require_free_application_name(name: str) -> None:
    """Check that no user has this name.

    Raises:
        Conflict: when a user has it.
    """
    if _is_in(name, get_user_model().objects.values_list("username", flat=True)):
        raise Conflict(f"A user has the name {name[:200]}. Choose another name for the application.")


def _is_in(name: str, names: QuerySet) -> bool:
    wanted = comparable_name(name)
    # Not by SQL, whose functions ignore only the case of ASCII letters on SQLite.
    return any(comparable_name(each) == wanted for each in names.iterator())
