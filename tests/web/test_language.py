"""Pages are in English, or in another language of the settings that the browser prefers."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from conductor_app.access.models import Preference

FRENCH = {"Accept-Language": "fr-CA,fr;q=0.9,en;q=0.5"}
HERE = "/admin/preferences/"


def test_pages_are_in_english_whatever_the_browser_prefers(operator):
    reply = operator.get(HERE, headers=FRENCH)

    assert '<html lang="en">' in reply.text and "Time zone" in reply.text
    assert reply.headers["Content-Language"] == "en" and "Accept-Language" in reply.headers["Vary"]


def test_pages_follow_the_browser_in_a_language_that_the_settings_add(operator, client, settings):
    settings.LANGUAGES = [*settings.LANGUAGES, ("fr", "Français")]

    for reply in (operator.get(HERE, headers=FRENCH), client.get("/admin/login/", headers=FRENCH)):
        assert '<html lang="fr">' in reply.text and reply.headers["Content-Language"] == "fr"


def test_a_language_that_a_former_version_stored_is_ignored(db):
    olga = User.objects.create_superuser("olga", password="secret")
    Preference.objects.create(user=olga, choices={"language": "de", "zone": "Asia/Tokyo"})
    client = Client()
    client.post("/admin/login/", {"username": "olga", "password": "secret"})

    page = client.get(HERE).text

    assert '<html lang="en">' in page and 'value="Asia/Tokyo"' in page


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_saving_leads_to_no_other_site(operator, elsewhere):
    reply = operator.post(HERE, {"density": "compact"}, headers={"Referer": elsewhere})

    assert reply.headers["Location"] == HERE
