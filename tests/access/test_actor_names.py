"""The names of users and applications: each name in the audit log stands for one actor."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from conductor_app.access.commands.applications import create_application
from conductor_app.access.models import Application
from conductor_app.access.permissions import comparable_name
from tests.access.users import logged_in_client

pytestmark = pytest.mark.django_db
LOOK_ALIKES = ["amy", "Amy", " amy ", "ａｍｙ", "a\u200bmy", "amy\u2060"]


@pytest.fixture
def amy() -> User:
    return User.objects.create_user("amy", is_staff=True)


@pytest.fixture
def browser(db) -> Client:
    return logged_in_client(User.objects.create_superuser("root"))


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_an_application_cannot_have_the_name_of_a_user(amy, name):
    response = Client().post("/api/applications", {"name": name}, "application/json")

    assert response.status_code == 409
    assert "A user has the name" in response.json()["message"]
    assert not Application.objects.exists()


def test_an_application_cannot_be_renamed_to_a_user(amy):
    made = create_application("shop", "ann")

    response = Client().put(f"/api/applications/{made.pk}", {"name": "AMY"}, "application/json")

    assert response.status_code == 409
    assert Application.objects.get().name == "shop"


def test_the_form_of_an_application_refuses_the_name_of_a_user(amy, browser):
    page = browser.post("/admin/conductor/application/add/", {"name": "Amy"})

    assert "A user has the name Amy." in page.content.decode()
    assert not Application.objects.exists()


@pytest.mark.parametrize("name", ["shop", "SHOP ", "ｓhop"])
def test_an_application_cannot_have_the_name_of_another(name, browser):
    create_application("Shop", "ann")
    other = create_application("other", "ann")

    made = Client().post("/api/applications", {"name": name}, "application/json")
    renamed = Client().put(f"/api/applications/{other.pk}", {"name": name}, "application/json")
    page = browser.post("/admin/conductor/application/add/", {"name": name})

    assert [made.status_code, renamed.status_code] == [409, 409]
    assert "Another application has the name" in made.json()["message"]
    assert "Another application has the name" in page.content.decode()
    assert set(Application.objects.values_list("name", flat=True)) == {"Shop", "other"}


@pytest.mark.parametrize("name", ["app:shop", "App:shop", "engine", "Anonymous"])
def test_nobody_has_a_name_that_the_server_uses(name):
    replies = [
        Client().post("/api/applications", {"name": name}, "application/json"),
        Client().put(f"/api/users/{name}", {"name": "Amy"}, "application/json"),
    ]

    assert all(reply.status_code in (400, 409) for reply in replies)
    assert not Application.objects.exists()
    assert not User.objects.exists()


@pytest.mark.parametrize("name", ["shop", "SHOP"])
def test_a_user_cannot_have_the_name_of_an_application(name):
    create_application("Shop", "ann")

    response = Client().put(f"/api/users/{name}", {"name": "Amy"}, "application/json")

    assert response.status_code == 409
    assert "An application has the name" in response.json()["message"]


def test_the_forms_of_users_refuse_the_names_of_others(amy, browser):
    create_application("Shop", "ann")
    new = {"usable_password": "false"}

    for name, why in (("shop", "An application has the name"), ("a\u200bmy", "Another user has the name")):
        page = browser.post("/admin/auth/user/add/", new | {"username": name})
        assert why in page.content.decode() or "valid username" in page.content.decode()
    page = browser.post(f"/admin/auth/user/{amy.pk}/change/", {"username": "shop"})

    assert "An application has the name" in page.content.decode()
    assert User.objects.filter(username__in=["shop", "a\u200bmy"]).count() == 0


def test_a_user_differs_from_other_users_in_more_than_case(amy):
    response = Client().put("/api/users/AMY", {"name": "Amy"}, "application/json")

    assert response.status_code == 409


def test_a_user_and_an_application_keep_their_names(amy):
    made = create_application("Shop", "ann")

    assert Client().put("/api/users/amy", {"name": "Amy"}, "application/json").status_code == 200
    assert Client().put(f"/api/applications/{made.pk}", {"name": "shop"}, "application/json").status_code == 200


def test_names_of_other_letters_are_other_names():
    assert len({comparable_name(name) for name in ("amy", "ами", "amy2", "am y")}) == 4
