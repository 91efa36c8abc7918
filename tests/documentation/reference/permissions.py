"""Rights and predefined roles."""

from conductor_app.access.permissions import ACCESSES, ADMIN, PERMISSION_BY_RIGHT, SYSTEM_ROLES, TARGET_TYPES

from .tables import code, table


def write_accesses() -> str:
    """Return which accesses exist to each type of target, with the Django permission of the first one."""
    rows = [
        (code(target), *("yes" if access in accesses else "" for access in ACCESSES), code(pattern.format("…")))
        for target, (pattern, accesses) in TARGET_TYPES.items()
    ]
    return table(("target type", *map(code, ACCESSES), "Django permission"), rows)


def write_roles() -> str:
    """Return the rights of each predefined role."""
    return table(
        ("role", "group on the pages", "rights on all objects"),
        [(code(name), role.group, _rights(name)) for name, role in SYSTEM_ROLES.items()],
    )


def _rights(name: str) -> str:
    if name == ADMIN:
        return "everything"
    rights = SYSTEM_ROLES[name].rights
    targets_by_accesses: dict[tuple[str, ...], list[str]] = {}
    for target in TARGET_TYPES:
        accesses = tuple(
            access for access in ACCESSES if (access, target) in rights and (access, target) in PERMISSION_BY_RIGHT
        )
        if accesses:
            targets_by_accesses.setdefault(accesses, []).append(target)
    return "; ".join(
        f"{', '.join(map(code, accesses))} on {', '.join(map(code, targets))}"
        for accesses, targets in targets_by_accesses.items()
    )
