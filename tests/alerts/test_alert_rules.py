"""Rules that one click turns on: a new cause, a cause that came back, and a queue without workers."""

import pytest
from django.contrib.auth.models import User

from conductor_app.access.commands.users import Subject, grant
from conductor_app.access.permissions import EXECUTE, READ, WORKFLOW_DEF
from conductor_app.alerts import commands as alerts
from conductor_app.alerts.models import Alert, AlertFiring, AlertTarget
from conductor_app.failures.commands import group_failures, transition_group
from conductor_app.failures.models import FailureGroup
from tests.access.users import logged_in_client
from tests.builders import simple
from tests.page_text import html, page_text
from tests.scenario import claim_and_report, define_task, define_workflow, start_run, start_run_of

pytestmark = pytest.mark.django_db
PAGE = "/admin/alerts/"


@pytest.fixture
def mailbox(clock) -> AlertTarget:
    return alerts.create_target("email", "Ann", {"addresses": "ann@example.com"}, "olga")


def turn_on(operator, kind: str, mailbox: AlertTarget, workflow: str = "") -> Alert:
    operator.post(PAGE, {"do": kind, "workflow": workflow, "target": str(mailbox.pk)})
    return Alert.objects.get(kind=kind, workflow=workflow)


def fail(name: str, reason: str) -> str:
    """Let a task of a run fail, and return the name of its workflow."""
    define_task(name, retryCount=0)
    run = start_run_of(simple(name))
    claim_and_report(name, "FAILED", reason=reason)
    group_failures(100)
    return run.name


def sentences(clock) -> list[str]:
    """Check the alerts and return what was sent by this check, and by those before."""
    clock.advance(seconds=61)
    alerts.check_due_alerts(10)
    return list(AlertFiring.objects.order_by("pk").values_list("sentence", flat=True))


def test_a_rule_on_new_causes_fires_once_for_each_cause_that_begins_after_it(operator, clock, mailbox):
    fail("charge", "no funds")
    rule = turn_on(operator, "new_cause", mailbox)
    assert sentences(clock) == []

    fail("ship", "no truck")
    [sent] = sentences(clock)
    assert sent.startswith("All workflows: 1 new cause of failures: ") and "no truck" in sent
    fail("ship", "no truck")
    assert sentences(clock) == [sent]

    rule.refresh_from_db()
    assert rule.incident_at is not None
    transition_group(FailureGroup.objects.get(ref="ship").pk, "acknowledge", "olga")
    assert sentences(clock) == [sent]
    rule.refresh_from_db()
    assert rule.incident_at is None


def test_a_rule_of_a_workflow_ignores_the_causes_of_others(operator, clock, mailbox):
    turn_on(operator, "new_cause", mailbox, "another")
    name = fail("charge", "no funds")
    assert sentences(clock) == []

    turn_on(operator, "new_cause", mailbox, name)
    define_task("ship", retryCount=0)
    fail("ship", "no truck")
    assert [sent.partition(":")[0] for sent in sentences(clock)] == [name]


def test_a_rule_on_new_causes_ignores_errors_that_a_retry_repairs(operator, clock, mailbox):
    turn_on(operator, "new_cause", mailbox)
    define_task("ship", retryCount=1, retryDelaySeconds=0)
    start_run_of(simple("ship"))
    claim_and_report("ship", "FAILED", reason="no truck")
    group_failures(100)
    assert sentences(clock) == []
    assert "There were 0 in the last 7 days." in page_text(operator.get(PAGE))

    claim_and_report("ship", "FAILED", reason="no truck")
    group_failures(100)
    assert len(sentences(clock)) == 1
    assert "There was 1 in the last 7 days." in page_text(operator.get(PAGE))


def test_a_rule_on_causes_that_come_back_fires_each_time(operator, clock, mailbox):
    fail("charge", "no funds")
    turn_on(operator, "returned_cause", mailbox)
    group = FailureGroup.objects.get()
    for count in (1, 2):
        transition_group(group.pk, "resolve", "olga")
        assert len(sentences(clock)) == count - 1
        fail("charge", "no funds")
        found = sentences(clock)
        assert len(found) == count and "1 cause came back" in found[-1]


def test_a_rule_on_queues_without_workers_fires_after_five_minutes(operator, clock, mailbox):
    turn_on(operator, "unpolled_queue", mailbox)
    start_run_of(simple("ship"))
    assert sentences(clock) == []

    clock.advance(seconds=300)
    assert sentences(clock) == ["All workflows: 1 queue without workers: ship (1 pending)"]
    assert len(sentences(clock)) == 1

    claim_and_report("ship", "COMPLETED")
    assert len(sentences(clock)) == 1
    assert Alert.objects.get().incident_at is None


def test_a_rule_on_queues_fires_at_once_for_those_that_are_without_workers_when_it_is_turned_on(
    operator, clock, mailbox
):
    start_run_of(simple("ship"))
    clock.advance(seconds=300)

    page = operator.post(PAGE, {"do": "unpolled_queue", "workflow": "", "target": str(mailbox.pk)}, follow=True)

    assert "Within a minute it fires for the queues without workers: ship." in page_text(page)
    assert sentences(clock) == ["All workflows: 1 queue without workers: ship (1 pending)"]
    assert len(sentences(clock)) == 1


def test_the_page_lists_rules_targets_and_history_and_turns_a_rule_off(operator, clock, mailbox):
    turn_on(operator, "new_cause", mailbox)
    fail("charge", "no funds")
    sentences(clock)

    page = page_text(operator.get(PAGE))
    assert "New cause All workflows Ann" in page and "Email" in page and "1 new cause of failures" in page

    operator.post(PAGE, {"do": "remove", "alert": str(Alert.objects.get().pk)})
    assert not Alert.objects.exists()


def test_the_link_of_a_notification_leads_to_what_the_rule_watches(operator, clock, mailbox):
    cause, queue = turn_on(operator, "new_cause", mailbox, "order"), turn_on(operator, "unpolled_queue", mailbox)

    assert operator.get(f"{PAGE}{cause.pk}/")["Location"] == "/admin/failures/?definition=order"
    assert operator.get(f"{PAGE}{queue.pk}/")["Location"] == "/admin/queues/"


def test_a_rule_needs_a_target_and_is_turned_on_once(operator, clock, mailbox):
    refused = operator.post(PAGE, {"do": "new_cause"}, follow=True)
    assert "Select 1 to 10 targets" in page_text(refused) and not Alert.objects.exists()

    turn_on(operator, "new_cause", mailbox)
    again = operator.post(PAGE, {"do": "new_cause", "target": str(mailbox.pk)}, follow=True)
    assert "This rule is on." in page_text(again) and Alert.objects.count() == 1
    for odd in ({"do": "none"}, {"do": "count", "target": "x"}, {"do": "remove", "alert": "-1"}, {}):
        assert operator.post(PAGE, odd, follow=True).status_code == 200


def test_a_viewer_sees_the_page_and_turns_nothing_on(viewer, mailbox):
    assert 'value="new_cause"' not in html(viewer.get(PAGE))
    assert viewer.post(PAGE, {"do": "new_cause", "target": str(mailbox.pk)}).status_code == 403


def test_the_page_takes_the_same_statements_for_any_number_of_rules(
    operator, clock, mailbox, django_assert_max_num_queries
):
    for name in ("a", "b", "c"):
        turn_on(operator, "new_cause", mailbox, name)

    operator.get(PAGE)
    with django_assert_max_num_queries(12):
        operator.get(PAGE)


def test_each_rule_has_a_button_that_turns_it_on(operator, mailbox):
    page = page_text(operator.get("/admin/alerts/"))

    assert page.count("Turn on ") > 3 and "Turn on New cause New cause" in page


def test_a_rule_that_is_on_for_all_workflows_has_no_button(operator, clock, mailbox):
    turn_on(operator, "new_cause", mailbox, "order")
    assert 'value="new_cause"' in html(operator.get(PAGE))

    turn_on(operator, "new_cause", mailbox)

    page = operator.get(PAGE)
    assert 'value="new_cause"' not in html(page) and 'value="returned_cause"' in html(page)
    assert "On New cause A run failed" in page_text(page)


def test_what_fires_now_comes_first(operator, clock, mailbox):
    turn_on(operator, "new_cause", mailbox)
    turn_on(operator, "unpolled_queue", mailbox)
    Alert.objects.filter(kind="unpolled_queue").update(incident_at=clock.now(), last_fired_at=clock.now())

    assert "Queue without workers All workflows" in (page := page_text(operator.get(PAGE)))
    assert page.index("Queue without workers All workflows") < page.index("New cause All workflows")
    assert "Firing" in page


@pytest.fixture
def granted(clock, mailbox):
    """Return a client of a person who operates the workflow `order`, and another who reads it."""
    define_workflow("order", simple("charge"))
    define_workflow("other", simple("pay"))
    alerts.turn_on_rule("new_cause", "", [mailbox.pk], "olga")
    alerts.turn_on_rule("new_cause", "other", [mailbox.pk], "olga")
    people = []
    for name, accesses in (("wanda", [READ, EXECUTE]), ("rita", [READ])):
        user = User.objects.create_user(name, is_staff=True)
        grant(Subject(user_id=user.pk), WORKFLOW_DEF, "order", accesses, name, "olga")
        people.append(logged_in_client(user))
    return people


def test_who_operates_a_workflow_turns_its_rules_on_for_a_target_that_she_names(granted, clock, mailbox):
    operator, reader = granted
    page = operator.post(PAGE, {"do": "returned_cause", "workflow": "order", "target_name": "Ann"}, follow=True)

    assert "Cause came back order Ann" in page_text(page) and "The rule is on." in page_text(page)
    rule = Alert.objects.get(workflow="order")
    assert rule.by == "wanda" and list(rule.targets.all()) == [mailbox]
    assert "Cause came back order Ann" in page_text(reader.get(PAGE)) and "Turn o" not in page_text(reader.get(PAGE))
    assert reader.post(PAGE, {"do": "remove", "alert": rule.pk}).status_code == 403

    operator.post(PAGE, {"do": "remove", "alert": rule.pk})
    assert not Alert.objects.filter(workflow="order").exists()


def test_who_operates_a_workflow_sees_no_other_alerts_and_no_targets(granted, clock, mailbox):
    alerts.turn_on_rule("returned_cause", "order", [mailbox.pk], "olga")
    AlertFiring.objects.create(
        alert=Alert.objects.get(workflow="order"), at=1, sentence="mine", error="ann@example.com"
    )
    AlertFiring.objects.create(alert=Alert.objects.get(workflow="other"), at=1, sentence="theirs")

    for client in granted:
        page = html(client.get(PAGE))
        assert "mine" in page and "theirs" not in page and "ann@example.com" not in page
        assert "other" not in page_text(client.get(PAGE)).partition("History")[0].partition("Rules")[2].split()
        assert client.get(f"/admin/alert-targets/{mailbox.pk}/").status_code == 403
        assert client.get("/admin/alert-targets/new/webhook/").status_code == 403
        assert f'value="{mailbox.pk}"' not in page.partition('name="target')[2]


@pytest.mark.parametrize("workflow", ["", "other", "ordered"])
def test_who_operates_a_workflow_changes_no_rules_of_others(granted, clock, mailbox, workflow):
    operator, reader = granted
    before = list(Alert.objects.values_list("pk", flat=True))
    form = {"do": "returned_cause", "workflow": workflow, "target_name": "Ann", "target": mailbox.pk}

    assert operator.post(PAGE, form).status_code == reader.post(PAGE, form | {"workflow": "order"}).status_code == 403
    for pk in before:
        assert operator.post(PAGE, {"do": "remove", "alert": pk}).status_code == 403
    view = alerts.save_view("all", {}, "olga", is_shared=True)
    saved = {"view": view.pk, "kind": "count", "threshold": 1, "window": 60, "repeat": 60, "target": mailbox.pk}
    assert operator.post(PAGE, {"do": "save", **saved}).status_code == 403
    assert list(Alert.objects.values_list("pk", flat=True)) == before


def test_a_target_is_found_by_its_whole_name_only(granted, clock, mailbox):
    for name in ("", "An", "Ann2"):
        form = {"do": "new_cause", "workflow": "order", "target_name": name, "target": mailbox.pk}
        assert "No alert target has this name" in page_text(granted[0].post(PAGE, form, follow=True))
    assert not Alert.objects.filter(workflow="order").exists()


def test_a_rule_counts_the_tasks_of_its_workflow_only(operator, clock, mailbox):
    define_workflow("order", simple("charge"))
    define_workflow("other", simple("charge"))
    for name in ("order", "other", "other"):
        start_run(name)
    turn_on(operator, "unpolled_queue", mailbox, "order")
    clock.advance(seconds=300)

    assert sentences(clock) == ["order: 1 queue without workers: charge (1 pending)"]


def test_the_rule_on_new_causes_says_how_many_there_were(operator, clock, mailbox):
    fail("charge", "no funds")
    assert "There was 1 in the last 7 days." in page_text(operator.get(PAGE))
    clock.advance(seconds=8 * 86_400)
    assert "There were 0 in the last 7 days." in page_text(operator.get(PAGE))
