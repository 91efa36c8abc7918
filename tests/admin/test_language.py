"""Pages use the reader's language; API replies are always in English."""

import re
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.template import Context, Template
from django.test import Client
from django.utils import translation

from tests.insight.scenarios import claim_and_report, start_run_of, step

GERMAN = {"Accept-Language": "de-DE,de;q=0.9,en;q=0.5"}
HERE = "/admin/preferences/"


def test_pages_follow_the_browser_language_until_a_user_selects_one(operator):
    asked = operator.get(HERE, headers=GERMAN)
    operator.post(HERE, {"language": "en"})
    chosen = operator.get(HERE, headers=GERMAN)

    assert '<html lang="de">' in asked.text and "Zeitzone" in asked.text
    assert asked.headers["Content-Language"] == "de" and "Accept-Language" in asked.headers["Vary"]
    assert '<html lang="en">' in chosen.text and "Time zone" in chosen.text


def test_the_language_is_stored_for_the_next_login_and_returns_to_the_same_page(db):
    User.objects.create_superuser("olga", password="secret")
    client = Client()
    client.post("/admin/login/", {"username": "olga", "password": "secret"})
    answer = client.post(HERE, {"language": "de"}, headers={"Referer": "http://testserver/admin/queues/?x=1"})
    client.logout()
    client.post("/admin/login/", {"username": "olga", "password": "secret"})

    assert answer.headers["Location"] == "http://testserver/admin/queues/?x=1"
    assert '<html lang="de">' in client.get(HERE).text


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_choosing_leads_to_no_other_site(operator, elsewhere):
    answer = operator.post(HERE, {"language": "de"}, headers={"Referer": elsewhere})

    assert answer.headers["Location"] == HERE


def test_a_language_that_is_not_there_is_refused_by_name(operator):
    answer = operator.post(HERE, {"language": "tlh"}, follow=True)

    assert "Unsupported language" in answer.text and "tlh" in answer.text
    assert '<html lang="en">' in answer.text


def test_the_page_to_sign_in_on_follows_the_browser(client, db):
    assert '<html lang="de">' in client.get("/admin/login/", headers=GERMAN).text


def test_the_api_always_answers_in_english(operator):
    operator.post(HERE, {"language": "de"})
    for path in ("/api/workflow/none", "/api/queue/v1/task/none", "/api/nowhere"):
        english, german = operator.get(path), operator.get(path, headers=GERMAN)

        assert german.status_code == english.status_code
        assert re.sub(r"[0-9a-f-]{20,}|\d+", "", german.text) == re.sub(r"[0-9a-f-]{20,}|\d+", "", english.text)


def test_numbers_in_machine_readable_attributes_are_not_localized():
    with translation.override("de"):
        said = Template("{{ drawn }} {{ large }} {{ large|many }} {{ took|span }}").render(
            Context({"drawn": 1234.5, "large": 1234567, "took": 1500})
        )

    assert said == "1234.5 1234567 1.234.567 1,5 s"


@pytest.mark.parametrize("tab", ["timeline", "diagram"])
def test_drawings_have_the_same_geometry_in_every_language(operator, clock, tab):
    run = start_run_of(step("charge"), step("ship"))
    claim_and_report("charge")
    path = f"/admin/conductor/run/{run.pk}/change/?tab={tab}"

    assert geometry(operator.get(path, headers=GERMAN).text) == geometry(operator.get(path).text)


def geometry(page: str) -> list[str]:
    """Return the numbers of all drawings on a page."""
    return re.findall(r'\b(?:x|y|x1|x2|y1|y2|width|height|d|points|transform|viewBox)="[^"]*"', unescape(page))
