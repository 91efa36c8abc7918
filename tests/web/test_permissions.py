"""Every operation declares its permission."""

import pytest

from conductor_app.access.permissions import PERMISSION_BY_RIGHT, RIGHT_BY_PERMISSION, SYSTEM_ROLES
from conductor_app.site import api_urls as urls
from conductor_app.web.api.permissions import ADMINISTRATORS_ONLY
from conductor_app.web.api.view import HANDLED_METHODS, ConductorView, UnknownAddress


def operations():
    for pattern in urls.urlpatterns:
        view = getattr(pattern.callback, "cls", None)
        if view and issubclass(view, ConductorView) and view is not UnknownAddress and view.needs_login:
            yield view, {name for name in HANDLED_METHODS if name != "head" and hasattr(view, name)}


def test_every_view_declares_the_operations_of_its_own_methods_and_no_others():
    wrong = [view.__name__ for view, methods in operations() if vars(view).get("operations", {}).keys() != methods]

    assert wrong == []


def test_a_method_that_is_not_declared_is_for_administrators_only():
    assert ConductorView.operation("put").permission is ADMINISTRATORS_ONLY


def test_every_path_of_the_api_checks_permissions():
    others = [str(pattern.pattern) for pattern in urls.urlpatterns if not hasattr(pattern.callback, "cls")]

    assert others == ["health", "docs", "docs/<str:name>", "docs.js"]


def test_a_right_and_a_permission_of_the_pages_are_one_to_one():
    assert len(RIGHT_BY_PERMISSION) == len(PERMISSION_BY_RIGHT)
    assert SYSTEM_ROLES["ADMIN"].rights == PERMISSION_BY_RIGHT.keys()


@pytest.mark.django_db
def test_every_right_is_a_permission_that_django_has():
    from django.contrib.auth.models import Permission

    known = {f"{app}.{name}" for app, name in Permission.objects.values_list("content_type__app_label", "codename")}

    page_permissions = {page for role in SYSTEM_ROLES.values() for page in role.page_permissions}
    assert set(PERMISSION_BY_RIGHT.values()) | page_permissions <= known
