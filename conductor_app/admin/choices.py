"""Preferences of a user: stored in the database, copied into the session at login."""

from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest

from ..models import Preference

SESSION_KEY = "ops_choices"
COMPACT = "compact"
DENSITIES = ("comfortable", COMPACT)
"""The heights of rows in tables."""


@receiver(user_logged_in)
def restore_preferences(request: HttpRequest, user: AbstractBaseUser, **_: Any) -> None:
    """Copy the user's preferences into the new session."""
    row = Preference.objects.filter(pk=user.pk).first()
    if row is not None:
        request.session[SESSION_KEY] = row.choices


def saved_preferences(request: HttpRequest) -> dict[str, Any]:
    """Return the user's preferences by name."""
    return request.session.get(SESSION_KEY, {})


def is_compact(request: HttpRequest) -> bool:
    """Return True if the rows of tables are compact."""
    return saved_preferences(request).get("density") == COMPACT


def save_preference(request: HttpRequest, **changes: Any) -> None:
    """Store preferences for this session and later ones."""
    preferences = {**saved_preferences(request), **changes}
    Preference.objects.update_or_create(user_id=request.user.pk, defaults={"choices": preferences})
    request.session[SESSION_KEY] = preferences
