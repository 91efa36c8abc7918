"""Permissions of a signed-in user in one statement. Django's backend takes one for the user and one for the groups."""

from typing import Any

from django.contrib.auth.models import AnonymousUser, Permission, User
from django.db.models import Exists, OuterRef, Q


class PermissionPreload:
    """Loads the permissions of a user for the backend behind it, which decides. It grants nothing itself."""

    def authenticate(self) -> None:
        """Accept no credentials."""

    def has_perm(self, user: User | AnonymousUser, perm: str, obj: Any = None) -> bool:
        """Load the permissions if they have not been loaded. The next backend decides."""
        load_permissions(user)
        return False

    def has_module_perms(self, user: User | AnonymousUser, app_label: str) -> bool:
        """Load the permissions if they have not been loaded. The next backend decides."""
        load_permissions(user)
        return False


def load_permissions(user: Any) -> None:
    """Set the caches that `ModelBackend` reads: the permissions of the user, and those of the user's groups."""
    if not user.is_active or user.is_anonymous or user.is_superuser or hasattr(user, "_perm_cache"):
        return
    own = User.user_permissions.through.objects.filter(permission=OuterRef("pk"), user=user.pk)
    memberships = User.groups.through.objects.filter(user=user.pk)
    shared = Permission.group_set.through.objects.filter(
        permission=OuterRef("pk"), group__in=memberships.values("group")
    )
    rows = Permission.objects.order_by().annotate(is_own=Exists(own), is_shared=Exists(shared))
    granted = rows.filter(Q(is_own=True) | Q(is_shared=True))
    columns = granted.values_list("content_type__app_label", "codename", "is_own", "is_shared")
    names = [(f"{label}.{codename}", is_own, is_shared) for label, codename, is_own, is_shared in columns]
    user._user_perm_cache = {name for name, is_own, _ in names if is_own}
    user._group_perm_cache = {name for name, _, is_shared in names if is_shared}
