"""Digests by email: who receives them, when, and what they report."""

import pytest
from django.contrib.auth.models import Permission, User
from django.core import mail

from conductor_app.access.models import DigestSubscription
from conductor_app.alerts import digests
from conductor_app.core.errors import Invalid
from conductor_app.events.workers.publisher import publish_due_events
from conductor_app.failures import commands as failure_groups
from conductor_app.runs.models import Message
from tests.builders import human, step
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db
# The tests begin on Monday, 1 March 2027, 12:00 UTC.
HOUR = 3600
DAY = 24 * HOUR


@pytest.fixture
def ann() -> User:
    return User.objects.create_superuser("ann", "ann@example.com", "x")


def fail_runs(clock, count: int, reason: str = "ValueError: no luck") -> None:
    scenario = Scenario(clock, step("pay"))
    for _ in range(count - 1):
        scenario.starts("order")
    for _ in range(count):
        scenario.worker("pay").fails(reason)
    failure_groups.group_failures(100)


def send() -> list[str]:
    """Send the due digests, and return the bodies of all emails so far."""
    digests.send_due_digests(10)
    publish_due_events()
    return [message.body for message in mail.outbox]


def test_a_daily_digest_reports_failures_of_the_day_at_seven_in_the_time_zone_of_the_user(clock, ann, settings):
    settings.CONDUCTOR_PUBLIC_URL = "https://conductor.example.org"
    digests.subscribe(ann, "daily", "Asia/Tokyo")
    fail_runs(clock, 3)
    # It is 21:00 in Tokyo.
    clock.advance(seconds=10 * HOUR - 1)
    assert send() == []
    clock.advance(seconds=1)

    [body] = send()

    assert mail.outbox[0].to == ["ann@example.com"]
    assert mail.outbox[0].subject == "Conductor: 3 failed runs, 1 new failure group, 0 overdue human tasks"
    assert body.startswith("In the last 24 hours: 3 failed runs, 1 new failure group")
    assert "     3  order\n" in body
    assert "     3  order › pay: ValueError: no luck\nhttps://conductor.example.org/admin/failures/" in body
    assert (
        "To change or stop this email, open your preferences. https://conductor.example.org/admin/preferences/" in body
    )


def test_a_digest_is_sent_once_a_day_and_only_if_there_is_something_to_report(clock, ann):
    digests.subscribe(ann, "daily", "UTC")
    fail_runs(clock, 1)
    clock.advance(seconds=19 * HOUR)

    assert len(send()) == len(send()) == 1
    clock.advance(seconds=DAY)
    assert len(send()) == 1
    assert DigestSubscription.objects.get().next_at == clock.now() + DAY * 1000


def test_a_weekly_digest_is_sent_on_monday_and_covers_seven_days(clock, ann):
    digests.subscribe(ann, "weekly", "UTC")
    fail_runs(clock, 2)
    clock.advance(seconds=6 * DAY)
    assert send() == []
    clock.advance(seconds=19 * HOUR)

    [body] = send()

    assert body.startswith("In the last seven days: 2 failed runs")


def test_an_overdue_human_task_is_reported(clock, ann):
    digests.subscribe(ann, "daily", "UTC")
    ann_within_an_hour = {"assignee": {"userType": "CONDUCTOR_USER", "user": "ann"}, "slaMinutes": 60}
    asked = {"displayName": "Approve it", "assignments": [ann_within_an_hour]}
    Scenario(clock, human("approve", inputs={"__humanTaskDefinition": asked}))
    clock.advance(seconds=19 * HOUR)

    [body] = send()

    assert "1 overdue human task" in body and "Approve it (order): overdue for 18 h" in body


@pytest.mark.parametrize("change", [{"is_active": False}, {"is_superuser": False}, {"email": ""}], ids=str)
def test_a_user_who_may_not_see_runs_any_more_gets_no_digest(clock, ann, change):
    digests.subscribe(ann, "daily", "UTC")
    fail_runs(clock, 1)
    User.objects.update(**change)
    clock.advance(seconds=19 * HOUR)

    assert send() == [] and not Message.objects.exists()


def test_a_subscription_without_an_email_address_is_refused(clock, ann):
    ann.email = ""

    with pytest.raises(Invalid, match="no email address"):
        digests.subscribe(ann, "daily", "UTC")
    with pytest.raises(Invalid, match="Unknown period"):
        digests.subscribe(ann, "hourly", "UTC")


def test_saving_the_same_subscription_again_postpones_nothing(clock, ann):
    digests.subscribe(ann, "daily", "UTC")
    before = DigestSubscription.objects.get().next_at
    clock.advance(seconds=20 * HOUR)

    digests.subscribe(ann, "daily", "UTC")

    assert DigestSubscription.objects.get().next_at == before


def test_preferences_start_change_and_end_a_digest(clock, ann, client):
    client.force_login(ann)
    page = "/admin/preferences/"

    assert "Every Monday at 7:00" in client.post(page, {"digest": "weekly", "zone": "Asia/Tokyo"}, follow=True).text
    row = DigestSubscription.objects.get()
    assert (row.period, row.zone, row.user) == ("weekly", "Asia/Tokyo", ann)
    client.post(page, {"digest": "", "zone": "UTC"})
    assert not DigestSubscription.objects.exists()


def test_preferences_offer_digests_only_to_users_who_may_see_runs(client):
    user = User.objects.create_user("vera", "vera@example.com", is_staff=True)
    client.force_login(user)
    assert 'name="digest"' not in client.get("/admin/preferences/").text
    user.user_permissions.add(Permission.objects.get(codename="view_run"))
    assert 'name="digest"' in client.get("/admin/preferences/").text


def test_a_hostile_period_is_refused(client, ann):
    client.force_login(ann)

    assert "Unknown period" in client.post("/admin/preferences/", {"digest": "\0'x"}, follow=True).text
    assert not DigestSubscription.objects.exists()
