"""Every operation says what it needs."""

import pytest

from conductor_app.access.access_types import PERMISSION_BY_RIGHT, RIGHT_BY_PERMISSION, SYSTEM_ROLES
from conductor_app.api.conductor import urls
from conductor_app.api.conductor.permissions import RULE_BY_OPERATION
from conductor_app.api.conductor.view import HANDLED_METHODS, ConductorView, UnknownAddress


def operations():
    for pattern in urls.urlpatterns:
        view = getattr(pattern.callback, "cls", None)
        if view and issubclass(view, ConductorView) and view is not UnknownAddress and view.needs_login:
            yield from (f"{view.__name__}.{name}" for name in HANDLED_METHODS if name != "head" and hasattr(view, name))


def test_every_operation_declares_what_it_needs_and_nothing_else_does():
    assert set(operations()) == RULE_BY_OPERATION.keys()


def test_every_address_of_the_api_is_of_a_view_that_asks():
    others = [str(pattern.pattern) for pattern in urls.urlpatterns if not hasattr(pattern.callback, "cls")]

    assert others == ["health", "docs", "docs.js"]


def test_a_right_and_a_permission_of_the_pages_are_one_to_one():
    assert len(RIGHT_BY_PERMISSION) == len(PERMISSION_BY_RIGHT)
    assert SYSTEM_ROLES["ADMIN"].rights == PERMISSION_BY_RIGHT.keys()


@pytest.mark.django_db
def test_every_right_is_a_permission_that_django_has():
    from django.contrib.auth.models import Permission

    known = {f"{app}.{name}" for app, name in Permission.objects.values_list("content_type__app_label", "codename")}

    page_permissions = {page for role in SYSTEM_ROLES.values() for page in role.page_permissions}
    assert set(PERMISSION_BY_RIGHT.values()) | page_permissions <= known
