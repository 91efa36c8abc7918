"""The settings of this project: `conf.retention_days` is `CONDUCTOR_RETENTION_DAYS`, or its default in the table."""

from typing import Any

from django.conf import settings

from .table import BY_SETTING, COLORS, DEFAULTS, MIB, django_name

__all__ = ["CHECKS", "COLORS", "DEFAULTS", "MIB", "django_name", "setting_errors"]
CHECKS = "conductor_settings"
"""The tag of system checks of the configuration. The other checks are about the code."""


def __getattr__(name: str) -> Any:
    if name not in DEFAULTS:
        raise AttributeError(f"conductor_app.settings.conf has no setting {name!r}")
    return getattr(settings, django_name(name), DEFAULTS[name])


def setting_errors() -> list[str]:
    """Return one sentence for each setting that is unknown or has an invalid type or value."""
    return [*_unknown_settings(), *filter(None, map(_setting_error, DEFAULTS))]


def _unknown_settings() -> list[str]:
    valid_names = set(map(django_name, DEFAULTS))
    names = {name for name in dir(settings) if name.startswith("CONDUCTOR_")}
    return [f"{name} is not a setting of this server." for name in sorted(names - valid_names)]


def _setting_error(name: str) -> str | None:
    value, default = __getattr__(name), DEFAULTS[name]
    if not isinstance(value, _accept(default)):
        return f"{django_name(name)} is {value!r}, but must be of type {type(default).__name__}."
    choices = BY_SETTING[name].options.get("choices", (value,))
    if value not in choices:
        return f"{django_name(name)} is {value!r}, but must be one of: {', '.join(choices)}."
    return None


def _accept(default: Any) -> tuple[type, ...]:
    return {float: (int, float), tuple: (list, tuple)}.get(type(default), (type(default),))
