"""The page on which administrators limit callers."""

import pytest
from django.contrib.auth.models import User

from conductor_app.access import quotas as token_buckets
from conductor_app.access.models import AuditEntry, CallerQuota
from conductor_app.access.quotas import POLLS
from conductor_app.payloads.models import StoredPayload
from conductor_app.taskcluster.auth.commands import ClientSettings, create_client
from tests.access.users import create_application
from tests.builders import step
from tests.page_text import page_text
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db
PAGE = "/admin/quotas/"


@pytest.fixture
def shop(clock):
    return create_application("shop")


def save(client, kind="default", name="", **values):
    return client.post(PAGE, {"do": "save", "kind": kind, "name": name, **values}, follow=True)


def test_a_saved_quota_is_displayed_and_audited(operator, shop):
    answer = save(operator, "application", "shop", starts_per_second="2.5", stored_bytes="10")

    assert "Quotas saved. They take effect within one second." in page_text(answer)
    row = CallerQuota.objects.get()
    assert (row.user_id, row.starts_per_second, row.stored_bytes, row.polls_per_second) == (
        *(shop.user_id, 2.5, 10 * 1024 * 1024),
        None,
    )
    entry = AuditEntry.objects.get(object_type="quota")
    assert (entry.actor, entry.action, entry.object_id) == ("olga", "save", f"user {shop.user_id}")
    assert (entry.facts["before"]["starts_per_second"], entry.facts["after"]["starts_per_second"]) == (None, 2.5)


def test_each_kind_of_caller_can_have_quotas(operator, shop, clock):
    User.objects.create_user("vera")
    create_client("fleet/1", ClientSettings(["*"], clock.now() + 1_000, "", False), "olga")
    for kind, name in (("default", ""), ("application", shop.pk), ("user", "vera"), ("client", "fleet/1")):
        save(operator, kind, name, polls_per_second="7")
        save(operator, kind, name, polls_per_second="8")

    assert list(CallerQuota.objects.values_list("polls_per_second", flat=True)) == [8.0] * 4
    page = page_text(operator.get(PAGE))
    assert all(name in page for name in ("shop application", "vera user", "fleet/1 Taskcluster client"))


REFUSED = {
    "an unknown application": ({"kind": "application", "name": "none"}, "There is no application"),
    "an application as a user": ({"kind": "user", "name": "app-shop"}, "There is no user"),
    "an unknown client": ({"kind": "client", "name": "none"}, "There is no client"),
    "an unknown kind": ({"kind": "robot"}, "The kind of caller must be one of"),
    "no number": ({"polls_per_second": "many"}, "Not a valid number"),
    "a negative number": ({"open_runs": "-1"}, "must be 0 (no limit) to"),
    "infinity": ({"polls_per_second": "inf"}, "must be 0 (no limit) to"),
    "a huge number": ({"open_runs": "9" * 30}, "must be 0 (no limit) to"),
}


def test_an_invalid_quota_is_refused_with_its_reason(operator, shop):
    for case, (values, message) in REFUSED.items():
        answer = operator.post(PAGE, {"do": "save", "kind": "default", **values}, follow=True)

        assert message in page_text(answer), case
        assert not CallerQuota.objects.exists(), case


def test_the_page_displays_what_a_caller_uses_now(operator, shop, clock):
    save(operator, "application", "shop", polls_per_second="50", open_runs="3", stored_bytes="1")
    for _ in range(12):
        token_buckets.take_token(f"user {shop.user_id}", POLLS, 50)
    scenario = Scenario(clock, step("pay"))
    type(scenario.row).objects.update(starter_id=shop.user_id)
    StoredPayload.objects.create(
        path="workflow/input/a.json", size=1024 * 1024, created_at=1, uploader=f"user {shop.user_id}"
    )

    page = page_text(operator.get(PAGE))

    assert "shop application – 12 of 50 – 1 of 3 1.0 MB of 1.0 MB used up olga" in page


def test_the_form_shows_the_quotas_that_are_edited(operator, shop):
    save(operator, "application", "shop", open_runs="12", stored_bytes="3")

    page = operator.get(PAGE, {"edit": f"user {shop.user_id}"}).content.decode()

    assert '<option value="application" selected>' in page
    assert f'value="{shop.pk}"' in page and 'value="12"' in page and 'value="3"' in page


def test_removed_quotas_leave_the_default(operator, shop):
    save(operator, "application", "shop", open_runs="12")

    operator.post(PAGE, {"do": "remove", "caller": f"user {shop.user_id}"})
    again = operator.post(PAGE, {"do": "remove", "caller": f"user {shop.user_id}"}, follow=True)

    assert not CallerQuota.objects.exists()
    assert "The caller has no quotas of its own." in page_text(again)
    assert [entry.action for entry in AuditEntry.objects.filter(object_type="quota").order_by("pk")] == [
        *("save", "remove")
    ]


def test_a_viewer_sees_the_quotas_and_changes_none(viewer, shop):
    assert "you need the permission to change caller quotas" in page_text(viewer.get(PAGE))
    assert viewer.post(PAGE, {"do": "save", "kind": "default", "open_runs": "1"}).status_code == 403
    assert not CallerQuota.objects.exists()
