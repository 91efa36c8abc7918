"""The settings of this app: `conf.retention_days` is `CONDUCTOR_RETENTION_DAYS`, or its default in the table.

Another Django project that uses the app can also set `CONDUCTOR = {"RETENTION_DAYS": 30}`.
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from .table import BY_SETTING, COLORS, DEFAULTS, MIB, django_name

__all__ = ["CHECKS", "COLORS", "DEFAULTS", "MIB", "django_name", "setting_errors"]
CHECKS = "conductor_settings"
"""The tag of system checks of the configuration. The other checks are about the code."""
DICTIONARY = "CONDUCTOR"
"""The setting of another Django project that has those of this app by their names."""
_UNSET: Any = object()


def __getattr__(name: str) -> Any:
    if name not in DEFAULTS:
        raise AttributeError(f"conductor_app.settings.conf has no setting {name!r}")
    value = getattr(settings, django_name(name), _UNSET)
    return _of_dictionary(name) if value is _UNSET else value


def _of_dictionary(name: str) -> Any:
    values = getattr(settings, DICTIONARY, None)
    return values.get(name.upper(), DEFAULTS[name]) if isinstance(values, Mapping) else DEFAULTS[name]


def setting_errors() -> list[str]:
    """Return one sentence for each setting that is unknown or has an invalid type or value."""
    return [*_unknown_settings(), *_dictionary_errors(), *filter(None, map(_setting_error, DEFAULTS))]


def _unknown_settings() -> list[str]:
    valid_names = set(map(django_name, DEFAULTS))
    names = {name for name in dir(settings) if name.startswith("CONDUCTOR_")}
    return [f"{name} is not a setting of this server." for name in sorted(names - valid_names)]


def _dictionary_errors() -> list[str]:
    values = getattr(settings, DICTIONARY, {})
    if not isinstance(values, Mapping):
        return [f"{DICTIONARY} is {values!r}, but must be a dictionary."]
    valid_names = {name.upper() for name in DEFAULTS}
    unknown = [f"{DICTIONARY}[{name!r}] is not a setting of this app." for name in values if name not in valid_names]
    twice = [name for name in values if name in valid_names and hasattr(settings, django_name(name))]
    return [*unknown, *(f"{DICTIONARY}[{name!r}] and {django_name(name)} are both set." for name in twice)]


def _setting_error(name: str) -> str | None:
    value, default = __getattr__(name), DEFAULTS[name]
    shown = django_name(name) if hasattr(settings, django_name(name)) else f"{DICTIONARY}[{name.upper()!r}]"
    if not isinstance(value, _accept(default)):
        return f"{shown} is {value!r}, but must be of type {type(default).__name__}."
    choices = BY_SETTING[name].options.get("choices", (value,))
    if value not in choices:
        return f"{shown} is {value!r}, but must be one of: {', '.join(choices)}."
    return None


def _accept(default: Any) -> tuple[type, ...]:
    return {float: (int, float), tuple: (list, tuple)}.get(type(default), (type(default),))
