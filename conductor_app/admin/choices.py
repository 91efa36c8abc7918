"""What the reader has chosen: read at sign-in, kept in the session and, for the next one, in the database."""

from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest

from ..models import Preference

SESSION_KEY = "ops_choices"


@receiver(user_logged_in)
def restore_preferences(request: HttpRequest, user: AbstractBaseUser, **_: Any) -> None:
    """Bring what the person has chosen into the new session."""
    row = Preference.objects.filter(pk=user.pk).first()
    if row is not None:
        request.session[SESSION_KEY] = row.choices


def saved_preferences(request: HttpRequest) -> dict[str, Any]:
    """What the person has chosen so far, by name."""
    return request.session.get(SESSION_KEY, {})


def save_preference(request: HttpRequest, **chosen: Any) -> None:
    """Keep a choice, for this session and those to come."""
    preferences = {**saved_preferences(request), **chosen}
    Preference.objects.update_or_create(user_id=request.user.pk, defaults={"choices": preferences})
    request.session[SESSION_KEY] = preferences
