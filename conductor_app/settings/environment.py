"""Typed readers of environment variables.

An invalid value raises ImproperlyConfigured, which stops the start with a message that names the variable.
"""

import ipaddress
import json
import os
import re
import resource
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

TRUTHS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
SQL_SCHEMES = ("postgresql://", "postgres://", "sqlite:///")
"""Schemes of the databases that SQL tasks support."""

FILE_SUFFIX = "_FILE"
"""The suffix of a variable that has the path of a file with the value."""

READ_NAMES: set[str] = set()
"""The names of all variables that the settings have read."""

SIGNING_KEY_LENGTH = 50
"""The minimum length of SECRET_KEY: the limit of Django's own deployment check."""


def text(name: str, default: str) -> str:
    """Return the variable's value, or the default if it is empty or not set.

    Instead of the value, the variable NAME_FILE can have the path of a file with it: orchestrators and systemd pass
    secrets as files.
    """
    READ_NAMES.update((name, f"{name}{FILE_SUFFIX}"))
    value, path = (os.environ.get(each, "").strip() for each in (name, f"{name}{FILE_SUFFIX}"))
    if value and path:
        raise ImproperlyConfigured(f"{name} and {name}{FILE_SUFFIX} are both set. Remove one of them.")
    return (_read_value(f"{name}{FILE_SUFFIX}", path) if path else value) or default


def _read_value(name: str, path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise ImproperlyConfigured(f"{name}={path} is refused: {reason}.") from error


def require_value(name: str, example: str) -> str:
    """Return the variable's value."""
    if value := text(name, ""):
        return value
    raise ImproperlyConfigured(f"{name} is not set. Set it in the environment, for example {name}={example}")


def number(name: str, default: int, *, least: int = 0, most: int | None = None) -> int:
    """Return an integer within its bounds."""
    raw_value = text(name, str(default))
    if (
        not raw_value.isascii()
        or not raw_value.isdigit()
        or int(raw_value) < least
        or (most is not None and int(raw_value) > most)
    ):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ImproperlyConfigured(f"{name}={raw_value!r} is refused: it must be a whole number {bounds}.")
    return int(raw_value)


def web_connections(name: str, default: int, *, least: int) -> int:
    """Return the maximum number of connections of a web process: at most half of the files that it may open."""
    wanted = number(name, default, least=least)
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if most_files == resource.RLIM_INFINITY else min(wanted, most_files // 2)


def boolean(name: str, default: bool) -> bool:
    """Return a boolean in one of the usual spellings."""
    raw_value = text(name, str(default)).lower()
    if raw_value not in TRUTHS:
        raise ImproperlyConfigured(f"{name}={raw_value!r} is refused: it must be one of: {', '.join(TRUTHS)}.")
    return TRUTHS[raw_value]


def choice(name: str, default: str, *, choices: tuple[str, ...]) -> str:
    raw_value = text(name, default)
    if raw_value not in choices:
        raise ImproperlyConfigured(f"{name}={raw_value!r} is refused: it must be one of: {', '.join(choices)}.")
    return raw_value


def split_list(raw_value: str) -> list[str]:
    """Return the entries of a comma-separated list."""
    return [entry.strip() for entry in raw_value.split(",") if entry.strip()]


def host_names(name: str, value: str) -> list[str]:
    """Return the host names of a comma-separated list.

    Raises:
        ImproperlyConfigured: when one stands for all hosts: requests could then choose the host of links.
    """
    names = split_list(value)
    if "*" in names:
        raise ImproperlyConfigured(f"{name}=* is refused: it must list the names under which clients reach the server.")
    return names


def groups(name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return isolation groups in the format of queue names: `blue`, `@east`, `@east-blue`."""
    raw_value = split_list(text(name, ",".join(default)))
    if any(len(group) > 257 or not group.strip("@-") for group in raw_value):
        raise ImproperlyConfigured(f"{name} is refused: it must be isolation groups such as blue,green or @east-blue")
    return tuple(dict.fromkeys(raw_value))


def signing_key(name: str, value: str) -> str:
    """Return a key that signs sessions, tokens and credentials. Errors do not contain it."""
    if len(value) < SIGNING_KEY_LENGTH or len(set(value)) < 5:
        raise ImproperlyConfigured(
            f"{name} is refused: it must have at least {SIGNING_KEY_LENGTH} random characters. "
            "Create one with: openssl rand -base64 48"
        )
    return value


def secret_list(name: str, default: tuple[str, ...] = (), *, least: int) -> tuple[str, ...]:
    """Return the entries of a comma-separated list of long secrets. Errors do not contain them."""
    raw_value = split_list(text(name, ",".join(default)))
    if any(len(key) < least for key in raw_value):
        raise ImproperlyConfigured(f"{name} is refused: each of its keys must have at least {least} characters.")
    return tuple(raw_value)


def taskcluster_client(name_of_id: str, name_of_token: str) -> tuple[str, str]:
    """Return a client's id and access token, or two empty strings. Errors do not contain the token."""
    id, token = text(name_of_id, ""), text(name_of_token, "")
    if bool(id) != bool(token):
        raise ImproperlyConfigured(f"{name_of_id} and {name_of_token} must be set together, or neither.")
    if id and not re.fullmatch(r"[A-Za-z0-9!@/:.+|_-]{1,255}", id):
        raise ImproperlyConfigured(f"{name_of_id}={id!r} is refused: it must be a client id such as static/root")
    if token and not re.fullmatch(r"[a-zA-Z0-9_-]{22,66}", token):
        raise ImproperlyConfigured(f"{name_of_token} is refused: it must have 22 to 66 letters, digits, _ and -.")
    return id, token


def networks(name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return networks, such as 10.0.0.0/8."""
    raw_value = split_list(text(name, ",".join(default)))
    try:
        return tuple(str(ipaddress.ip_network(network)) for network in raw_value)
    except ValueError as error:
        raise ImproperlyConfigured(
            f"{name} is refused: {error}. It must be networks such as 10.0.0.0/8,fd00::/8"
        ) from error


def connections(name: str, default: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the addresses of databases by name, from a JSON object.

    Errors do not contain addresses, which include passwords.
    """
    shape = f'{name} is refused: it must be a JSON object such as {{"billing": "postgresql://user:password@host/db"}}'
    try:
        raw_value = json.loads(text(name, json.dumps(dict(default))))
    except ValueError:
        # The parser's own error would contain the value.
        raw_value = None
    if not isinstance(raw_value, dict):
        raise ImproperlyConfigured(f"{shape}.")
    for key, address in raw_value.items():
        if not isinstance(address, str) or not address.startswith(SQL_SCHEMES):
            raise ImproperlyConfigured(
                f"{shape}. The address of {key!r} does not begin with {' or '.join(SQL_SCHEMES)}."
            )
    return raw_value


def roles_by_group(name: str, default: Mapping[str, list[str]] = MappingProxyType({})) -> dict[str, list[str]]:
    """Return the roles of each group of a directory, from a JSON object such as {"operators": ["WORKFLOW_MANAGER"]}."""
    try:
        raw_value = json.loads(text(name, json.dumps(dict(default))))
        return {
            str(group): [roles] if isinstance(roles, str) else list(map(str, roles))
            for group, roles in raw_value.items()
        }
    except (ValueError, AttributeError, TypeError) as error:
        raise ImproperlyConfigured(
            f'{name} is refused: it must be a JSON object such as {{"operators": ["WORKFLOW_MANAGER"]}}.'
        ) from error


def require_together(*names: str) -> None:
    """Raise ImproperlyConfigured unless all of these variables are set, or none."""
    if (missing := [name for name in names if not text(name, "")]) and len(missing) < len(names):
        raise ImproperlyConfigured(f"{', '.join(names)} must be set together. Not set: {', '.join(missing)}.")


def address(name: str, default: str = "", *, schemes: tuple[str, ...]) -> str:
    """Return an address with one of these schemes, or "". Errors do not contain it: it may include a password."""
    raw_value = text(name, default)
    try:
        parts = urlsplit(raw_value)
        is_right = parts.scheme in schemes and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_right = False
    if raw_value and not is_right:
        raise ImproperlyConfigured(f"{name} is refused: it must be an address such as {schemes[0]}://host.example.org")
    return raw_value


def trace_address(name: str, default: str = "") -> str:
    """Return the address of the page of a trace, with the place of its id, or ""."""
    value = address(name, default, schemes=("https", "http"))
    if value and "{trace_id}" not in value:
        raise ImproperlyConfigured(
            f"{name} is refused: it must contain {{trace_id}}, as in https://jaeger.example.org/trace/{{trace_id}}"
        )
    return value


def issue_address(name: str, default: str = "") -> str:
    """Return the address of the form for a new issue, with the places of its title and text, or ""."""
    value = address(name, default, schemes=("https", "http"))
    if value and not ("{title}" in value and "{text}" in value):
        raise ImproperlyConfigured(
            f"{name} is refused: it must contain {{title}} and {{text}}, as in "
            "https://github.com/acme/shop/issues/new?title={title}&body={text}"
        )
    return value


def origin(name: str, default: str = "", *, schemes: tuple[str, ...]) -> str:
    """Return an address without path, user and query, or ""."""
    value = address(name, default, schemes=schemes).rstrip("/")
    parts = urlsplit(value)
    if value and ("@" in parts.netloc or value != f"{parts.scheme}://{parts.netloc}"):
        raise ImproperlyConfigured(f"{name} is refused: it must have no path, as in {schemes[0]}://host.example.org")
    return value.lower()


def path_prefix(name: str, default: str = "") -> str:
    """Return a prefix of paths, such as /conductor, or ""."""
    value = text(name, default).rstrip("/")
    if value and not re.fullmatch(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+", value):
        raise ImproperlyConfigured(f"{name}={value!r} is refused: it must be a path such as /conductor")
    return value


def host_of(url: str) -> list[str]:
    """Return the host of an address for ALLOWED_HOSTS, in a list that is empty if there is no address."""
    host = urlsplit(url).hostname
    return [f"[{host}]" if ":" in host else host] if host else []


def servers(name: str, default: str = "") -> str:
    """Return hosts with ports, such as one:9092,two:9092, or ""."""
    return parse_servers(name, text(name, default))


def parse_servers(name: str, value: str) -> str:
    """Return the hosts with ports in a text, without blanks. `name`: the variable, for the error."""
    raw_value = split_list(value)
    for server in raw_value:
        host, _, port = server.rpartition(":")
        if not host or "/" in host or "@" in host or not (port.isascii() and port.isdigit()):
            raise ImproperlyConfigured(f"{name} is refused: it must be hosts with ports, such as one:9092,two:9092")
    return ",".join(raw_value)


def clusters(name: str, default: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the servers of Kafka clusters by name, from a JSON object such as {"orders": "one:9092,two:9092"}."""
    shape = f'{name} is refused: it must be a JSON object such as {{"orders": "one:9092,two:9092"}}.'
    try:
        raw_value = json.loads(text(name, json.dumps(dict(default))))
    except ValueError:
        raise ImproperlyConfigured(shape) from None
    if not isinstance(raw_value, dict) or not all(isinstance(each, str) and each for each in raw_value.values()):
        raise ImproperlyConfigured(shape)
    return {key: parse_servers(name, each) for key, each in raw_value.items()}


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach a server that listens on the host."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def folder(name: str, default: str) -> Path:
    """Return the absolute path of the folder that a variable names, and create it for its owner if it does not exist.

    Raises:
        ImproperlyConfigured: when it cannot be created, or cannot be written.
    """
    path = Path(text(name, default)).resolve()
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ImproperlyConfigured(
            f"{name}={str(path)!r} is refused: the folder cannot be created: {error.strerror}. Choose another folder."
        ) from error
    require_access(name, path)
    return path


def require_access(name: str, folder: Path, *files: str) -> None:
    """Check that this process can read and write a folder and those of the files in it that exist."""
    if not os.path.exists(folder):
        raise ImproperlyConfigured(
            f"{name}={str(folder)!r} is refused: user {os.geteuid()} cannot enter a folder above it. "
            "Choose another folder."
        )
    for path in (folder, *(folder / file for file in files)):
        mode = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
        if path.exists() and not os.access(path, mode, effective_ids=os.access in os.supports_effective_ids):
            owner = path.stat().st_uid
            raise ImproperlyConfigured(
                f"{name}={str(folder)!r} is refused: user {os.geteuid()} cannot read and write {path}, which belongs "
                f"to user {owner}. Change its owner, start the server as user {owner}, or choose another folder."
            )


def load_or_create_secret(path: Path) -> str:
    """Return the secret in this file. A missing file is created with a random secret, readable only by its owner."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # The secret is written to another file and then linked, so that processes that start together read the same one.
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    if not path.exists():
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(50))
        with suppress(FileExistsError):
            path.hardlink_to(draft)
        draft.unlink()
    return path.read_text().strip()
