"""Applications, users, groups, roles and permissions as clients know them, and what they say of them."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from django.contrib.auth.models import Group, User
from django.db.models import QuerySet

from ....access.access_keys import APPLICATION_USER_PREFIX
from ....access.access_types import ACCESSES, GRANTABLE_TARGET_TYPES, RIGHT_BY_PERMISSION, normalize_target_type
from ....core.errors import Invalid
from ....models import AccessKey, Application, Grant, GroupProfile, UserProfile

Document = dict[str, Any]


def application_document(row: Application) -> Document:
    """ConductorApplication."""
    document = {"id": row.id, "name": row.name, "createdBy": row.created_by, "createTime": row.created_at}
    return document | ({"updateTime": row.updated_at, "updatedBy": row.updated_by} if row.updated_at else {})


def access_key_document(row: AccessKey) -> Document:
    """AccessKey, without its secret."""
    return {"id": row.id, "status": "ACTIVE" if row.is_active else "INACTIVE", "createdAt": row.created_at}


def prefetch_groups(users: QuerySet[User]) -> QuerySet[User]:
    """Users with all that is shown of them, in a few statements."""
    return users.select_related("profile").prefetch_related(
        "groups__facts__roles__facts",
        "groups__facts__roles__permissions__content_type",
        "groups__permissions__content_type",
    )


def user_document(row: User) -> Document:
    """ConductorUser."""
    all_groups = sorted(row.groups.all(), key=lambda each: each.name)
    roles = [role_document(each) for each in all_groups if _profile_of(each).role]
    profile = getattr(row, "profile", None) or UserProfile()
    return {
        "id": row.username,
        "name": row.get_full_name() or row.username,
        "roles": roles + ([{"name": "ADMIN", "permissions": []}] if row.is_superuser and not roles else []),
        "groups": [group_document(each) for each in all_groups if not _profile_of(each).role],
        "uuid": str(uuid5(NAMESPACE_OID, f"conductor user {row.pk}")),
        "applicationUser": row.username.startswith(APPLICATION_USER_PREFIX),
        "encryptedId": False,
        "encryptedIdDisplayValue": row.username,
        "contactInformation": profile.contact,
    }


def group_document(row: Group) -> Document:
    """Group."""
    facts = _profile_of(row)
    return {
        "id": row.name,
        "description": facts.description,
        "roles": [role_document(each) for each in facts.roles.all()] if facts.pk else [],
        "defaultAccess": facts.default_access,
        "contactInformation": facts.contact,
    }


def _profile_of(row: Group) -> GroupProfile:
    """What is known of a group; nothing of one that was made on Django's own pages."""
    return getattr(row, "facts", None) or GroupProfile(group=row)


def role_document(row: Group) -> Document:
    """Role, for a group that is one."""
    permission_names = (f"{each.content_type.app_label}.{each.codename}" for each in row.permissions.all())
    rights = sorted(RIGHT_BY_PERMISSION[name] for name in permission_names if name in RIGHT_BY_PERMISSION)
    names = [permission_name(right) for right in rights]
    return {"name": row.facts.role, "permissions": [{"name": name} for name in names]}


def permission_name(right: tuple[str, str]) -> str:
    """A right as the permission of a role is called."""
    return "_".join(right)


def granted_access_document(rows: Iterable[tuple[str, str, str]]) -> Document:
    """GrantedAccessResponse, from (target type, target id, access)."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for kind, id, access in rows:
        found[kind, id].add(access)
    return {
        "grantedAccess": [
            {"target": {"type": kind, "id": id}, "access": sort_accesses(accesses)}
            for (kind, id), accesses in sorted(found.items())
        ]
    }


def sort_accesses(accesses: Iterable[str]) -> list[str]:
    return sorted(accesses, key=ACCESSES.index)


def subjects_by_access(grants: Iterable[Grant], creator: str, accesses: Iterable[str]) -> dict[str, list[Document]]:
    """Who may do what to a target: by a grant, or as its creator."""
    found: dict[str, list[Document]] = defaultdict(list)
    for each in grants:
        found[each.access].append(_subject_document(each))
    for access in accesses:
        if (subject := {"type": "USER", "id": creator}) not in found[access]:
            found[access].append(subject)
    return {access: found[access] for access in sort_accesses(found)}


def _subject_document(row: Grant) -> Document:
    if row.user is not None:
        return {"type": "USER", "id": row.user.username}
    facts = _profile_of(row.group)
    return {"type": "ROLE", "id": facts.role} if facts.role else {"type": "GROUP", "id": row.group.name}


def read_text(document: Document, name: str, *, max_length: int = 255, default: str | None = None) -> str:
    """A text of the document; raises Invalid where it is none, empty or too long."""
    value = document.get(name, default)
    if value is None and default is not None:
        value = default
    if not isinstance(value, str) or (not value.strip() and default is None):
        raise Invalid(f"'{name}' must be a text.")
    if len(value) > max_length:
        raise Invalid(f"'{name}' may have up to {max_length} characters.")
    return value.replace("\0", "")


def read_texts(document: Document, name: str) -> list[str] | None:
    """A list of texts, or None where the document says nothing of it; one text stands for a list of it."""
    value = document.get(name)
    if value is None:
        return None
    return read_text_list([value] if isinstance(value, str) else value, name)


def read_text_list(value: Any, name: str) -> list[str]:
    """A list of texts; raises Invalid."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Invalid(f"'{name}' must be a list of texts.")
    return list(dict.fromkeys(each.replace("\0", "") for each in value))


def read_text_map(document: Document, name: str) -> dict[str, str]:
    """A map of texts; raises Invalid."""
    value = document.get(name) or {}
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise Invalid(f"'{name}' must be a map of texts.")
    return value


def read_accesses(value: Any, name: str) -> list[str]:
    """Accesses by their names; raises Invalid."""
    found = read_text_list(value, name)
    if unknown := set(found) - set(ACCESSES):
        raise Invalid(f"'{name}' must be of {', '.join(ACCESSES)}; it has {', '.join(sorted(unknown))[:100]}.")
    return sort_accesses(found)


def read_default_access(document: Document) -> dict[str, list[str]]:
    """What the members of a group share of what they make."""
    value = document.get("defaultAccess") or {}
    if not isinstance(value, dict):
        raise Invalid("'defaultAccess' must be a map from target types to accesses.")
    return {_check_target_type(kind): read_accesses(given, "defaultAccess") for kind, given in value.items()}


def read_target(document: Document) -> tuple[str, str]:
    """The type and the id of a target; raises Invalid."""
    kind, id = _check_target_type(read_text(document, "type")), read_text(document, "id", max_length=512)
    if kind == "TAG" and ":" not in id:
        raise Invalid("A tag is written as key:value.")
    return kind, id


def _check_target_type(given: str) -> str:
    kind = normalize_target_type(given)
    if kind not in GRANTABLE_TARGET_TYPES:
        raise Invalid(
            f"There is no target type '{given[:100]}'; there are {', '.join(sorted(GRANTABLE_TARGET_TYPES))}."
        )
    return kind


def read_object_member(document: Document, name: str) -> Document:
    """An object within the document; raises Invalid."""
    value = document.get(name)
    if not isinstance(value, dict):
        raise Invalid(f"'{name}' must be an object.")
    return value
