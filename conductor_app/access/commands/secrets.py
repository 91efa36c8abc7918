"""Commands on secrets and variables. The audit log records their names, never their values."""

import re
from collections.abc import Callable

from ...core.errors import Conflict, Forbidden, Invalid, NotFound
from ...db.database import transaction
from ...db.fields import strip_nul
from ...utils import clock
from .. import audit, encryption, secrets
from ..grants import Tags, metadata_tags, mirror_tags, require_valid_tag
from ..models import Secret, Variable
from ..permissions import SECRET, VARIABLE

NAME = re.compile(r"[a-zA-Z0-9_-]{1,255}")
MAX_BYTES = 65_535
TARGETS = {Secret: SECRET, Variable: VARIABLE}


def put_secret(name: str, value: str, by: str, reason: str = "") -> None:
    """Create or replace a secret.

    Raises:
        Conflict: when the server's environment defines the secret.
    """
    check_name_and_value(name, value)
    if secrets.is_environment_secret(name):
        raise Conflict(f"The secret {name} is defined in the server's environment and cannot be changed here.")
    _save(Secret, name, by, reason, sealed=encryption.encrypt(name, value))


def put_variable(name: str, value: str, by: str, reason: str = "") -> None:
    """Create or replace a variable.

    Raises:
        Conflict: when the server's environment defines the variable.
    """
    check_name_and_value(name, value)
    if name in secrets.process_variables():
        raise Conflict(f"The variable {name} is defined in the server's environment and cannot be changed here.")
    _save(Variable, name, by, reason, value=strip_nul(value))


def check_name_and_value(name: str, value: str) -> None:
    """Check the name and the value of a secret or variable."""
    _check_name(name)
    if not value:
        raise Invalid("The value must not be empty.")
    if len(value.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise Invalid(f"The value must have at most {MAX_BYTES} bytes.")


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise Invalid("The name must have 1 to 255 letters, digits, _ or -.")


def _save(model: type[Secret | Variable], name: str, by: str, reason: str, **value: str) -> None:
    with transaction.atomic():
        now = clock.now()
        values = {**value, "updated_at": now, "updated_by": by[:255]}
        # A variable may have had tags before it existed.
        initial = {**values, "created_at": now, "created_by": by[:255], "tags": metadata_tags(TARGETS[model], name)}
        _, is_new = model.objects.update_or_create(pk=name, defaults=values, create_defaults=initial)
        _record_change(model, name, "create" if is_new else "overwrite", by, reason)
    transaction.on_commit(_clear_cache)


def delete_secret(name: str, by: str, reason: str = "") -> None:
    """Delete a secret, if it exists.

    Raises:
        Conflict: when the server's environment defines the secret.
    """
    if secrets.is_environment_secret(name):
        raise Conflict(f"The secret {name} is defined in the server's environment and cannot be deleted here.")
    _delete(Secret, name, by, reason)


def delete_variable(name: str, by: str, reason: str = "") -> None:
    """Delete a variable, if it exists.

    Raises:
        Conflict: when the server's environment defines the variable.
    """
    if name in secrets.process_variables():
        raise Conflict(f"The variable {name} is defined in the server's environment and cannot be deleted here.")
    _delete(Variable, name, by, reason)


def _delete(model: type[Secret | Variable], name: str, by: str, reason: str) -> None:
    with transaction.atomic():
        if model.objects.filter(pk=name).delete()[0]:
            _record_change(model, name, "delete", by, reason)
    transaction.on_commit(_clear_cache)


def tags_of(model: type[Secret | Variable], name: str) -> Tags:
    """Return the tags of a secret or variable. A variable that does not exist can have tags, as in Orkes."""
    found = model.objects.filter(pk=name).values_list("tags", flat=True).first()
    if found is not None:
        return found
    if model is Secret:
        raise NotFound(f"There is no secret named {name}.")
    return metadata_tags(VARIABLE, name)


def change_tags(model: type[Secret | Variable], name: str, change: Callable[[Tags], Tags], by: str) -> None:
    """Replace the tags of a secret or variable by the result of `change`.

    Raises:
        Invalid: when there is no such variable, and its name or one of the tags is invalid.
    """
    with transaction.atomic():
        row = model.objects.select_for_update().filter(pk=name).first()
        changed = change(tags_of(model, name) if row is None else row.tags)
        if row is None:
            _check_name(name)
            for tag in changed:
                require_valid_tag(tag)
        else:
            row.tags = changed
            row.save(update_fields=["tags"])
        mirror_tags(TARGETS[model], name, changed)
        _record_change(model, name, "tag", by)


def read_secret(name: str, by: str) -> str:
    """Return the value of a secret, and record the access in the audit log. The caller checks the permission.

    Raises:
        NotFound: when there is no such secret.
        Forbidden: when the server's environment defines the secret.
    """
    if secrets.is_environment_secret(name):
        raise Forbidden(f"The secret {name} is defined in the server's environment. Only tasks can read it.")
    found = secrets.cached_secrets([name]).get(name)
    if found is None:
        raise NotFound(f"There is no secret named {name}.")
    with transaction.atomic():
        _record_change(Secret, name, "read", by)
    return found


def secret_exists(name: str) -> bool:
    """Return True if there is a secret of this name."""
    return secrets.is_environment_secret(name) or Secret.objects.filter(pk=name).exists()


def secret_names() -> list[str]:
    """Return the names of all secrets."""
    return sorted({*secrets.environment_secret_names(), *Secret.objects.values_list("name", flat=True)})


def list_variables() -> dict[str, str]:
    """Return all variables that definitions can read, by name."""
    secrets.clear_variable_cache()
    return dict(sorted(secrets.all_variables().items()))


def reencrypt_secrets(by: str) -> int:
    """Encrypt every secret with the newest key. Returns how many were encrypted with another one."""
    count = 0
    for row in Secret.objects.order_by("name"):
        if not encryption.is_current(row.sealed):
            again = encryption.encrypt(row.name, encryption.decrypt(row.name, row.sealed))
            # A secret that was replaced since uses the newest key already.
            count += Secret.objects.filter(pk=row.name, sealed=row.sealed).update(sealed=again)
    with transaction.atomic():
        _record_change(Secret, "*", "reseal", by)
    return count


def _clear_cache() -> None:
    secrets.clear_secret_cache()
    secrets.clear_variable_cache()


def _record_change(model: type[Secret | Variable], name: str, action: str, by: str, reason: str = "") -> None:
    kind = model._meta.model_name or ""
    audit.record(kind, name, action, by, reason=reason)
