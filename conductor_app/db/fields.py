"""Field types: times, ids, keys of users, JSON documents stored as text, and authorship columns."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import orjson
from django.contrib.auth import get_user_model
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from ..core.masking import MARK, redact_masked
from ..core.primitives import JsonValue
from ..utils import process_state
from ..utils.json_values import has_long_number
from ..utils.process_state import Wiring
from .database import is_default


class MomentField(models.BigIntegerField):  # type: ignore[type-arg]
    """A time in epoch milliseconds."""


class IdField(models.CharField):  # type: ignore[type-arg]
    """An id: a time-ordered UUID as text, or a short id of Taskcluster."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"max_length": 64, **kwargs})

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        """Return the type of the column, on PostgreSQL by its other name.

        Django creates a second index, for patterns, beside each unique or indexed column of the type `varchar`. Ids are
        not searched by patterns: the beginning of an id is a range of the first index.
        """
        name = "character varying" if connection.vendor == "postgresql" else "varchar"
        return f"{name}({self.max_length})"


OF_USERS: dict[str, Any] = (
    {"on_delete": models.CASCADE} if is_default() else {"on_delete": models.DO_NOTHING, "db_constraint": False}
)
"""Arguments of foreign keys to tables of users and groups. They are rarely in another database than `default`."""
UserKey = int | str
"""The key of a user in this app: the primary key if that is a number, otherwise its text."""


class UserKeyField(models.Field):  # type: ignore[type-arg]
    """The key of a user, without a foreign key. 0 is no user, in a column of texts ""."""

    # Types for Django's mypy plugin.
    _pyi_private_set_type: UserKey
    _pyi_private_get_type: UserKey
    _pyi_lookup_exact_type: UserKey

    def get_internal_type(self) -> str:
        return "BigIntegerField" if users_have_numbers() else "TextField"

    def get_prep_value(self, value: Any) -> UserKey | None:
        value = super().get_prep_value(value)
        if value is None:
            return None
        return int(value) if users_have_numbers() else str(value or "")


class KeyOrNone(models.Func):
    """The foreign key of a user, or for NULL, which unique indexes do not compare, a value that is no key."""

    output_field: Any = models.TextField()

    def as_sql(self, compiler: Any, connection: Any, **_: Any) -> tuple[str, Any]:  # type: ignore[override]
        """Return the expression."""
        key, params = compiler.compile(self.get_source_expressions()[0])
        return f"COALESCE({key}, 0)" if users_have_numbers() else f"COALESCE(CAST({key} AS text), '')", params


@cache
def users_have_numbers() -> bool:
    """Return True if the primary keys of users are numbers. The users of another Django project may have others."""
    key: Any = get_user_model()._meta.pk
    while key.remote_field:
        key = key.target_field
    return isinstance(key, models.IntegerField)


def user_key(key: Any) -> UserKey:
    """Return the key of a user in this app, from its primary key."""
    return key if isinstance(key, int) else str(key)


class Authored(models.Model):
    """Author and time of the creation and of the last change."""

    created_at = MomentField(default=0)
    created_by = models.CharField(max_length=255, default="", blank=True)
    updated_at = MomentField(default=0)
    updated_by = models.CharField(max_length=255, default="", blank=True)

    class Meta:
        abstract = True


class DocumentField(models.TextField):  # type: ignore[type-arg]
    """A JSON value stored as text, which preserves key order, number formats, and integers of any size."""

    # Types for Django's mypy plugin: the field accepts and returns any JSON value.
    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def from_db_value(self, value: str | None, expression: object, connection: object) -> Any:
        return loads(value)

    def to_python(self, value: Any) -> Any:
        return value

    def get_prep_value(self, value: Any) -> str | None:
        return dumps(value)

    def value_to_string(self, obj: models.Model) -> str:
        return dumps(self.value_from_object(obj)) or ""


def dumps(value: JsonValue) -> str | None:
    """Return a JSON value as text; None stays None."""
    if value is None:
        return None
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        # orjson cannot write integers beyond 64 bits.
        return json.dumps(value, separators=(",", ":"), ensure_ascii=True, default=str)


def loads(text: str | None) -> Any:
    """Return the JSON value of a text; None stays None. Encrypted parts become `***`."""
    value = loads_encrypted(text)
    return redact_masked(value) if text is not None and MARK in text else value


def loads_decrypted(text: str | None) -> Any:
    """Return the JSON value of a text with its encrypted parts decrypted."""
    value = loads_encrypted(text)
    return _decrypt.value(value) if text is not None and MARK in text else value


_decrypt: Wiring[Callable[[Any], Any]] = process_state.wiring(redact_masked)


def set_decryption(decrypt: Callable[[Any], Any]) -> None:
    """Set the function that decrypts values. A higher layer has the keys and calls this."""
    _decrypt.value = decrypt


def loads_encrypted(text: str | None) -> Any:
    """Return the JSON value of a text as stored, with its encrypted parts; None stays None."""
    if text is None:
        return None
    try:
        # orjson reads integers beyond 64 bits as floats, and has a lower limit on nesting than the json module.
        return json.loads(text) if has_long_number(body := text.encode()) else orjson.loads(body)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return json.loads(text)


def strip_nul(text: str) -> str:
    """Return the text without NUL, which PostgreSQL cannot store."""
    return text.replace("\0", "") if "\0" in text else text


LAST_ID_PART = "z" * 8
"""Sorts after every character of an id, in the collations of both databases."""
