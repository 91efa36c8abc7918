"""Documents of applications, users, groups, roles, permissions and secrets, and the parsing of requests on them."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, cast
from uuid import NAMESPACE_OID, uuid5

import orjson
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet

from ...core.document.fields import FieldSpec, IntegerOf, ListOf, MapOf, NamedTable, ObjectOf, read_boolean, texts
from ...core.document.fields import read_text as read_text_field
from ...core.errors import Invalid
from ...core.masking import REDACTED
from ...core.primitives import JsonValue
from ...web.api.documents import TAGS, fields_of_type
from ..models import AccessKey, Application, Grant, GroupProfile, Secret, UserProfile
from ..permissions import (
    ACCESSES,
    APPLICATION_USER_PREFIX,
    GRANTABLE_TARGET_TYPES,
    RIGHT_BY_PERMISSION,
    normalize_target_type,
)

Document = dict[str, Any]
SECRET = NamedTable(
    "Secret",
    *fields_of_type(read_text_field, "name", "partial"),
    *fields_of_type(IntegerOf(64), "created_at", "updated_at"),
)
SECRET_WITH_TAGS = NamedTable("ExtendedSecret", FieldSpec("name", read_text_field), TAGS)
VARIABLE = NamedTable("EnvironmentVariable", *fields_of_type(read_text_field, "name", "value"))
CREDENTIALS = NamedTable("Credentials", *fields_of_type(read_text_field, "keyId", "keySecret"))
TOKEN = NamedTable("Token", *fields_of_type(read_text_field, "token"))
PERMISSION = NamedTable("Permission", *fields_of_type(read_text_field, "name"))
ROLE = NamedTable("Role", FieldSpec("name", read_text_field), FieldSpec("permissions", ListOf(ObjectOf(PERMISSION))))
GROUP = NamedTable(
    "Group",
    *fields_of_type(read_text_field, "id", "description"),
    FieldSpec("roles", ListOf(ObjectOf(ROLE))),
    FieldSpec("defaultAccess", MapOf(texts)),
    FieldSpec("contactInformation", MapOf(read_text_field)),
)
USER = NamedTable(
    "ConductorUser",
    *fields_of_type(read_text_field, "id", "name", "uuid", "encryptedIdDisplayValue"),
    FieldSpec("roles", ListOf(ObjectOf(ROLE))),
    FieldSpec("groups", ListOf(ObjectOf(GROUP))),
    *fields_of_type(read_boolean, "applicationUser", "encryptedId"),
    FieldSpec("contactInformation", MapOf(read_text_field)),
)
APPLICATION = NamedTable(
    "ConductorApplication",
    *fields_of_type(read_text_field, "id", "name", "createdBy", "updatedBy"),
    *fields_of_type(IntegerOf(64), "createTime", "updateTime"),
)
NEW_APPLICATION = NamedTable("CreateOrUpdateApplicationRequest", *fields_of_type(read_text_field, "name"))
NEW_USER = NamedTable(
    "UpsertUserRequest",
    FieldSpec("name", read_text_field),
    *fields_of_type(texts, "roles", "groups"),
    FieldSpec("contactInformation", MapOf(read_text_field)),
)
NEW_GROUP = NamedTable(
    "UpsertGroupRequest",
    FieldSpec("description", read_text_field),
    FieldSpec("roles", texts),
    FieldSpec("defaultAccess", MapOf(texts)),
)
NEW_ROLE = NamedTable("CreateOrUpdateRoleRequest", FieldSpec("name", read_text_field), FieldSpec("permissions", texts))
ACCESS_KEY = NamedTable(
    "AccessKey", *fields_of_type(read_text_field, "id", "status"), FieldSpec("createdAt", IntegerOf(64))
)
CREATED_KEY = NamedTable("CreatedAccessKey", *fields_of_type(read_text_field, "id", "secret"))
REFERENCE = NamedTable("Reference", *fields_of_type(read_text_field, "type", "id"))
AUTHORIZATION = NamedTable(
    "AuthorizationRequest",
    FieldSpec("subject", ObjectOf(REFERENCE)),
    FieldSpec("target", ObjectOf(REFERENCE)),
    FieldSpec("access", texts),
)
GRANT = NamedTable("GrantedAccess", FieldSpec("target", ObjectOf(REFERENCE)), FieldSpec("access", texts))
GRANTED = NamedTable("GrantedAccessResponse", FieldSpec("grantedAccess", ListOf(ObjectOf(GRANT))))


def application_document(row: Application) -> Document:
    """Return an application as a ConductorApplication."""
    document = {"id": row.id, "name": row.name, "createdBy": row.created_by, "createTime": row.created_at}
    return document | ({"updateTime": row.updated_at, "updatedBy": row.updated_by} if row.updated_at else {})


def access_key_document(row: AccessKey) -> Document:
    """Return an access key as an AccessKey, without its secret."""
    return {"id": row.id, "status": "ACTIVE" if row.is_active else "INACTIVE", "createdAt": row.created_at}


def prefetch_groups(users: QuerySet[User]) -> QuerySet[User]:
    """Return the users with all related rows that their documents need, in a few statements."""
    return users.select_related("profile").prefetch_related(
        "groups__profile__roles__profile",
        "groups__profile__roles__permissions__content_type",
        "groups__permissions__content_type",
    )


def user_document(row: User) -> Document:
    """Return a user as a ConductorUser."""
    all_groups = sorted(row.groups.all(), key=lambda each: each.name)
    roles = [role_document(each) for each in all_groups if _profile_of(each).role]
    profile = getattr(row, "profile", None) or UserProfile()
    return {
        "id": row.get_username(),
        "name": (row.get_full_name() if hasattr(row, "get_full_name") else "") or row.get_username(),
        "roles": roles + ([{"name": "ADMIN", "permissions": []}] if row.is_superuser and not roles else []),
        "groups": [group_document(each) for each in all_groups if not _profile_of(each).role],
        "uuid": str(uuid5(NAMESPACE_OID, f"conductor user {row.pk}")),
        "applicationUser": row.get_username().startswith(APPLICATION_USER_PREFIX),
        "encryptedId": False,
        "encryptedIdDisplayValue": row.get_username(),
        "contactInformation": profile.contact,
    }


def group_document(row: Group) -> Document:
    profile = _profile_of(row)
    return {
        "id": row.name,
        "description": profile.description,
        "roles": [role_document(each) for each in profile.roles.all()] if profile.pk else [],
        "defaultAccess": profile.default_access,
        "contactInformation": profile.contact,
    }


def _profile_of(row: Group) -> GroupProfile:
    """Return the profile of a group, or an empty one for a group that was created on Django's own pages."""
    return getattr(row, "profile", None) or GroupProfile(group=row)


def role_document(row: Group) -> Document:
    """Return a group that is a role as a Role."""
    permission_names = (f"{each.content_type.app_label}.{each.codename}" for each in row.permissions.all())
    rights = sorted(RIGHT_BY_PERMISSION[name] for name in permission_names if name in RIGHT_BY_PERMISSION)
    names = ["_".join(right) for right in rights]
    return {"name": _profile_of(row).role, "permissions": [{"name": name} for name in names]}


def granted_access_document(rows: Iterable[tuple[str, str, str]]) -> Document:
    """Return rows of (target type, target id, access) as a GrantedAccessResponse."""
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
    """Return the subjects that have each access to a target, by a grant or as its creator."""
    found: dict[str, list[Document]] = defaultdict(list)
    for each in grants:
        found[each.access].append(_subject_document(each))
    for access in accesses:
        if (subject := {"type": "USER", "id": creator}) not in found[access]:
            found[access].append(subject)
    return {access: found[access] for access in sort_accesses(found)}


def _subject_document(row: Grant) -> Document:
    if row.user is not None:
        return {"type": "USER", "id": row.user.get_username()}
    group = cast(Group, row.group)
    profile = _profile_of(group)
    return {"type": "ROLE", "id": profile.role} if profile.role else {"type": "GROUP", "id": group.name}


def read_text(document: Document, name: str, *, max_length: int = 255, default: str | None = None) -> str:
    """Return a text member of the document."""
    value = document.get(name, default)
    if value is None and default is not None:
        value = default
    if not isinstance(value, str) or (not value.strip() and default is None):
        raise Invalid(f"'{name}' must be a text.")
    if len(value) > max_length:
        raise Invalid(f"'{name}' must have at most {max_length} characters.")
    return value.replace("\0", "")


def read_texts(document: Document, name: str) -> list[str] | None:
    """Return a list of texts, or None if the document has no such member. A single text is a list of one."""
    value = document.get(name)
    if value is None:
        return None
    return read_text_list([value] if isinstance(value, str) else value, name)


def read_text_list(value: JsonValue, name: str) -> list[str]:
    """Return the value as a list of texts."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Invalid(f"'{name}' must be a list of texts.")
    return list(dict.fromkeys(each.replace("\0", "") for each in value))


def read_text_map(document: Document, name: str) -> dict[str, str]:
    """Return a member of the document as a map of texts."""
    value = document.get(name) or {}
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise Invalid(f"'{name}' must be a map of texts.")
    return value


def read_accesses(value: JsonValue, name: str) -> list[str]:
    """Return the accesses that the value names."""
    found = read_text_list(value, name)
    if unknown := set(found) - set(ACCESSES):
        raise Invalid(f"'{name}' must be of {', '.join(ACCESSES)}; it has {', '.join(sorted(unknown))[:100]}.")
    return sort_accesses(found)


def read_default_access(document: Document) -> dict[str, list[str]]:
    """Return the accesses that the members of a group have to the objects that a member creates."""
    value = document.get("defaultAccess") or {}
    if not isinstance(value, dict):
        raise Invalid("'defaultAccess' must be a map from target types to accesses.")
    return {_check_target_type(kind): read_accesses(given, "defaultAccess") for kind, given in value.items()}


def read_target(document: Document) -> tuple[str, str]:
    """Return the type and the id of a target."""
    kind, id = _check_target_type(read_text(document, "type")), read_text(document, "id", max_length=512)
    if kind == "TAG" and ":" not in id:
        raise Invalid("A tag must have the form key:value.")
    return kind, id


def _check_target_type(given: str) -> str:
    kind = normalize_target_type(given)
    if kind not in GRANTABLE_TARGET_TYPES:
        raise Invalid(
            f"There is no target type '{given[:100]}'; there are {', '.join(sorted(GRANTABLE_TARGET_TYPES))}."
        )
    return kind


def read_object_member(document: Document, name: str) -> Document:
    """Return a member of the document that must be an object."""
    value = document.get(name)
    if not isinstance(value, dict):
        raise Invalid(f"'{name}' must be an object.")
    return value


def wire_secret(row: Secret) -> dict[str, Any]:
    """Return the metadata of a secret, without its value."""
    return {"name": row.name, "partial": REDACTED, "created_at": row.created_at, "updated_at": row.updated_at}


def wire_secret_with_tags(row: Secret) -> dict[str, Any]:
    """Return a secret as an ExtendedSecret."""
    return {"name": row.name, "tags": row.tags}


def decode_text(body: bytes) -> str:
    """Return the text that the client sent: most clients send it as it is, one as a JSON string (api §8.3)."""
    try:
        value = orjson.loads(body)
    except ValueError:
        value = None
    if isinstance(value, str):
        return value
    try:
        return body.decode()
    except UnicodeDecodeError:
        # The bytes themselves may be secret: they are not repeated.
        raise Invalid("The value must be text in UTF-8.") from None
