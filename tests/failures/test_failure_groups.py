"""The inbox of failures and the page of one group."""

import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.exceptions import ImproperlyConfigured

from conductor_app.access.models import AuditEntry
from conductor_app.bulk import commands as bulk_commands
from conductor_app.bulk import executor as bulk_executor
from conductor_app.failures import commands as failure_groups
from conductor_app.failures.models import FailureGroup
from conductor_app.runs.models import Run
from conductor_app.settings import environment
from tests.builders import simple, step
from tests.page_text import html, page_text
from tests.scenario import ACTOR, Scenario, run_commit_hooks

pytestmark = pytest.mark.django_db
INBOX = "/admin/failures/"
TITLE = '502 from gateway <span class="varies" title="502 from gateway 2">…</span>'
"""The title of a group, the same whatever number the newest message has."""


@pytest.fixture
def scenario(clock) -> Scenario:
    scenario = Scenario(clock, step("pay"))
    scenario.starts("order")
    scenario.starts("order")
    for worker, reason in (("w7@41", "502 from gateway 1"), ("w8@42", "502 from gateway 2"), ("w7@41", "no funds")):
        clock.advance(seconds=1)
        scenario.worker("pay", worker).fails(reason)
    failure_groups.group_failures(100)
    return scenario


def group(message: str = "502 from gateway <n>") -> FailureGroup:
    return FailureGroup.objects.get(message=message)


def page_of(found: FailureGroup) -> str:
    return f"{INBOX}{found.pk}/"


def test_the_list_displays_groups_with_their_counts(operator, scenario):
    response = operator.get(INBOX)
    page = page_text(response)

    assert TITLE in html(response) and "502 from gateway …" in page and "<n>" not in page and "no funds" in page
    assert "Open 2" in page and "New today 2" in page and "Regressed 0" in page


def test_an_empty_list_explains_failure_groups(operator):
    assert "No failures" in page_text(operator.get(INBOX))


def test_an_empty_tab_names_the_last_failure(operator, scenario):
    assert "The last failure was" in page_text(operator.get(INBOX, {"view": "resolved"}))


def test_a_filter_without_hits_can_be_cleared(operator, scenario):
    page = page_text(operator.get(INBOX, {"q": "volcano"}))

    assert "No results" in page and "Clear" in page
    assert "no funds" in page_text(operator.get(INBOX, {"q": "FUNDS"}))
    assert "no funds" not in page_text(operator.get(INBOX, {"definition": "refund"}))


def test_a_group_displays_the_common_values_of_its_failures(operator, scenario):
    response = operator.get(page_of(group()))
    page = page_text(response)

    assert TITLE in html(response)
    assert "By worker build 41 1 50 % of failures" in page
    assert "By version 1 2 100 % of failures" in page
    assert "Runs affected 2" in page
    assert "502 from gateway 2" in page
    assert f"/admin/bulk/plan/?failure_group={group().pk}&amp;action=retry" in html(response)


def test_a_group_is_counted_by_label_and_by_a_value_of_the_input(operator, scenario):
    for country in ("de", "fr", "de"):
        run = scenario.starts("order", {"order": {"country": country, "is_gift": True}}, labels=(f"from-{country}",))
        scenario.worker("pay").fails("502 from gateway 3")
        assert run.status == "FAILED"
    failure_groups.group_failures(100)

    page = operator.get(page_of(group()), {"place": "input.order.country"})

    assert "By run label from-de 2 67 % of failures from-fr 1 33 % of failures" in page_text(page)
    assert "By a value of the input Place in the input order.country order.is_gift Count de 2 none 2 fr 1" in page_text(
        page
    )
    [address] = re.findall(r'href="([^"]*country%3Dde[^"]*)"', html(page))
    assert len(operator.get(unescape(address)).context["cl"].result_list) == 2
    assert "true 3" in page_text(operator.get(page_of(group()), {"place": "order.is_gift"}))
    assert operator.get(page_of(group()), {"place": "order..\0"}).status_code == 200


def test_a_group_is_resolved_with_a_reason(operator, scenario):
    address = page_of(group())

    operator.post(address, {"do": "resolve", "build": "43", "reason": "fixed"})

    assert (group().state, group().resolved_build) == ("RESOLVED", "43")
    assert AuditEntry.objects.get(object_type="failure group").reason == "fixed"
    page = page_text(operator.get(address))
    assert "olga resolve OPEN → RESOLVED build 43 fixed" in page
    assert "502 from" not in page_text(operator.get(INBOX))
    assert "502 from" in page_text(operator.get(INBOX, {"view": "resolved"}))


def test_a_group_is_assigned_annotated_merged_and_split(operator, scenario):
    operator.post(page_of(group()), {"do": "assign", "assignee": "olga"})
    operator.post(page_of(group()), {"do": "note", "note": "the gateway of <b>the bank</b>"})
    assert "502 from" in page_text(operator.get(INBOX, {"view": "mine"}))
    assert "<b>the bank" not in html(operator.get(page_of(group())))

    operator.post(page_of(group("no funds")), {"do": "merge", "into": str(group().pk)})
    assert "no funds" in page_text(operator.get(page_of(group()))).split("Merged groups")[1]
    assert "where its failures are counted" in page_text(operator.get(page_of(group("no funds"))))
    operator.post(page_of(group("no funds")), {"do": "split"})
    assert group("no funds").merged_into is None


def test_invalid_requests_are_rejected_without_changes(operator, scenario):
    for form in [
        {},
        {"do": "dance"},
        {"do": "recur"},
        {"do": "merge", "into": "x"},
        {"do": "merge", "into": "999999"},
        {"do": "resolve", "version": "-1"},
        {"do": "split"},
        {"do": "reopen"},
    ]:
        assert operator.post(page_of(group()), form, follow=True).status_code == 200, form
        assert group().state == "OPEN", form
        assert not AuditEntry.objects.filter(object_type="failure group").exists(), form


def test_a_viewer_sees_groups_and_cannot_act(viewer, scenario):
    page = viewer.get(page_of(group()))

    assert "you need the permission to change runs" in page_text(page)
    assert 'name="do"' not in html(page)
    assert viewer.post(page_of(group()), {"do": "resolve"}).status_code == 403


def test_there_is_no_such_group(operator):
    assert operator.get(f"{INBOX}1/").status_code == 404
    assert operator.get(f"{INBOX}{10**30}/").status_code == 404


def test_a_poll_without_changes_returns_nothing(operator, scenario):
    revision = operator.get(f"{INBOX}live/")["X-Revision"]

    assert operator.get(f"{INBOX}live/", {"rev": revision}).status_code == 204


def test_pages_of_failures_take_few_queries(viewer, scenario, django_assert_max_num_queries):
    own = page_of(group())
    viewer.get(own)  # permissions are loaded once in a process
    for address in (INBOX, own, f"{own}?place=order.country"):
        with django_assert_max_num_queries(16):
            viewer.get(address)


def test_counts_of_only_the_newest_runs_are_labeled_as_such(operator, scenario, monkeypatch):
    monkeypatch.setattr("conductor_app.failures.queries.SEARCHED_ROWS", 1)

    page = page_text(operator.get(page_of(group())))

    assert "By worker of the newest 1" in page and "By worker build of the newest" not in page


def test_a_group_tells_how_many_runs_are_still_failed_and_what_repaired_the_others(
    operator, clock, django_assert_max_num_queries
):
    scenario = Scenario(clock, simple("pay"))
    for _ in range(3):
        scenario.starts("order")
    for number in range(4):
        scenario.worker("pay").fail_terminally(f"502 from gateway {number}")
    failure_groups.group_failures(100)
    assert "4 of 4 runs still failed." in page_text(operator.get(page_of(group())))

    scenario.retry()
    scenario.worker("pay").completes()
    clock.advance(seconds=5)
    chosen = {"ids": list(Run.objects.filter(status="FAILED").values_list("pk", flat=True)[:2])}
    id = bulk_commands.start(bulk_commands.BulkRequest("retry", chosen, "the gateway is back"), ACTOR)
    for _ in range(4):
        with run_commit_hooks():
            bulk_executor.run_due_operations()
        clock.advance(seconds=0.5)
    scenario.worker("pay").completes()
    scenario.worker("pay").fail_terminally("502 from gateway 9")
    failure_groups.group_failures(100)

    with django_assert_max_num_queries(18):
        page = operator.get(page_of(group()))
    [failed] = re.findall(r'href="([^"]*)">2 of 4 runs still failed', html(page))
    assert len(operator.get(unescape(failed)).context["cl"].result_list) == 2
    assert "2 of 4 runs still failed, 1 repaired by bulk operations, 1 by hand." in page_text(page)
    assert f"/admin/bulk/{id}/" in html(page) and "1 run repaired" in page_text(page)


def test_the_chart_of_a_group_has_the_range_of_its_failures(operator, scenario, clock):
    assert operator.get(page_of(group())).context["chart"].time_range.name == "1h"
    clock.advance(seconds=3 * 86_400)
    assert operator.get(page_of(group())).context["chart"].time_range.name == "7d"


def test_several_groups_are_changed_at_once(operator, viewer, scenario):
    ids = [found.pk for found in FailureGroup.objects.all()]

    page = operator.post(INBOX, {"do": "acknowledge", "group": ids, "reason": "an outage"}, follow=True)
    operator.post(INBOX, {"do": "assign", "group": [*ids, "x"]})

    assert "2 failure groups changed." in page_text(page)
    assert set(FailureGroup.objects.values_list("state", "assignee")) == {("ACKNOWLEDGED", "olga")}
    assert AuditEntry.objects.filter(action="acknowledge", reason="an outage").count() == 2
    assert "Select failure groups" in page_text(operator.post(INBOX, {"do": "merge", "group": ids}, follow=True))
    assert "Select failure groups" in page_text(operator.post(INBOX, {"do": "resolve"}, follow=True))
    assert viewer.post(INBOX, {"do": "resolve", "group": ids}).status_code == 403
    assert 'name="group"' not in html(viewer.get(INBOX))


def fail_for_good(scenario: Scenario, reason: str, worker: str = "w7@41", times: int = 1) -> None:
    """Let new runs fail without a retry."""
    for _ in range(times):
        scenario.clock.advance(seconds=1)
        scenario.starts("order")
        scenario.worker("pay", worker).fail_terminally(reason)
    failure_groups.group_failures(100)


def listed_messages(operator, **query: str) -> list[str]:
    return [row["group"].message for row in operator.get(INBOX, query).context["rows"]]


def test_groups_are_sorted_by_lost_runs_count_and_time(operator, scenario):
    fail_for_good(scenario, "card refused", times=3)
    fail_for_good(scenario, "broken")

    rows = operator.get(INBOX, {"sort": "lost"}).context["rows"]
    lost = [row["lost"] for row in rows]
    by_lost_runs = listed_messages(operator)
    assert lost == sorted(lost, reverse=True) and lost[0] == 3 and by_lost_runs[0] == "card refused"
    assert listed_messages(operator, sort="count")[:2] == ["card refused", "502 from gateway <n>"]
    assert listed_messages(operator, sort="last")[:2] == ["broken", "card refused"]
    assert by_lost_runs == listed_messages(operator, sort="?") == [row["group"].message for row in rows]
    assert listed_messages(operator, sort="first")[0] == "broken"
    assert 'href="?view=all&amp;sort=count"' in html(operator.get(INBOX, {"view": "all"}))


def test_a_build_with_more_failures_than_work_stands_out(operator, scenario):
    fail_for_good(scenario, "card refused", "w8@42", times=2)
    for _ in range(3):
        scenario.starts("order")
        scenario.worker("pay", "w7@41").completes()

    page = operator.get(page_of(group("card refused")))

    [newer] = next(rows for label, rows, *_ in page.context["by"] if label == "By worker build")
    assert (newer.value, newer.percent, newer.is_notable) == ("42", 100, True) and newer.base_percent < 60
    assert "100 % of failures" in page_text(page) and f"{newer.base_percent} % of work" in page_text(page)


def test_a_group_has_the_whole_error_the_first_version_and_a_chart(operator, scenario):
    trace = "Traceback (most recent call last):\n  File \"pay.py\", line 3, in pay\nKeyError: 'iban'"
    fail_for_good(scenario, trace)

    page = operator.get(page_of(FailureGroup.objects.get(sample="KeyError: 'iban'")), {"range": "1h"})

    assert "line 3, in pay" in page_text(page) and "First seen in v1 build 41" in page_text(page)
    assert sum(page.context["chart"].series[0].values) == 1
    assert "<h1" in html(page) and "KeyError: &#x27;iban&#x27;" in html(page).split("<h1")[1].split("</h1>")[0]


def test_a_run_that_now_fails_for_another_cause_is_counted_apart_and_not_retried_with_its_former_group(operator, clock):
    scenario = Scenario(clock, simple("pay"))
    scenario.starts("order")
    for number in range(2):
        scenario.worker("pay").fail_terminally(f"502 from gateway {number}")
    failure_groups.group_failures(100)
    scenario.retry()
    scenario.worker("pay").fail_terminally("no funds")
    failure_groups.group_failures(100)

    former, present = (operator.get(page_of(group(*name))) for name in ((), ("no funds",)))

    assert "1 of 2 runs still failed, 1 now fails for another cause." in page_text(former)
    assert "1 of 1 run still failed." in page_text(present)
    for page in (former, present):
        assert operator.get(page.context["retry"]).context["selected"].total == 1
    failure_groups.merge_groups(group("no funds").pk, group().pk, ACTOR)
    assert "2 of 2 runs still failed." in page_text(operator.get(page_of(group())))


def test_the_page_of_a_group_and_of_an_operation_use_the_same_words_for_its_result(operator, clock):
    scenario = Scenario(clock, simple("pay"))
    scenario.starts("order")
    for number in range(2):
        scenario.worker("pay").fail_terminally(f"502 from gateway {number}")
    failure_groups.group_failures(100)
    id = bulk_commands.start(bulk_commands.BulkRequest("retry", {"failure_group": group().pk}, "fixed"), ACTOR)
    for _ in range(4):
        with run_commit_hooks():
            bulk_executor.run_due_operations()
        clock.advance(seconds=0.5)
    scenario.worker("pay").completes()
    scenario.worker("pay").fail_terminally("502 from gateway 2")
    failure_groups.group_failures(100)

    for address in (page_of(group()), f"/admin/bulk/{id}/"):
        shown = page_text(operator.get(address))
        assert "Done with failures" in shown and "502 from gateway …" in shown and "<n>" not in unescape(shown)


def test_a_new_issue_has_title_and_text_without_the_varying_parts_of_the_message(operator, scenario, settings):
    address = page_of(group())
    page = page_text(operator.get(address))
    assert "Create issue" not in page and "With the setting ISSUE_URL" in page
    settings.CONDUCTOR_ISSUE_URL = "https://github.com/acme/shop/issues/new?title={title}&body={text}"

    page = operator.get(address)

    assert "Create issue" in page_text(page)
    query = parse_qs(urlsplit(page.context["new_issue"]).query)
    assert query["title"] == ["order › pay: 502 from gateway …"]
    [text] = query["body"]
    assert "Failures: 2, runs affected: 2" in text and "By worker build: 41 (50 %), 42 (50 %)" in text
    assert text.endswith(f"http://testserver{address}") and "gateway 1" not in text


def test_the_address_of_an_issue_is_attached_and_removed(operator, viewer, scenario):
    address = page_of(group())
    operator.post(address, {"do": "issue", "issue": " https://acme.example/browse/PAY-12 "})

    for client in (operator, viewer):
        page = client.get(address)
        assert 'href="https://acme.example/browse/PAY-12"' in html(page) and "Issue PAY-12" in page_text(page)
    assert "PAY-12" in page_text(operator.get(INBOX))
    assert AuditEntry.objects.get(action="link_issue").actor == "olga"
    operator.post(address, {"do": "issue", "issue": ""})
    assert group().issue_url == ""


def test_an_address_of_an_issue_is_that_of_a_page(operator, scenario):
    for wrong in ["javascript:alert(1)", "https://a:b@x.org/1", "PAY-12", "https://x.org/" + "x" * 500]:
        page = operator.post(page_of(group()), {"do": "issue", "issue": wrong}, follow=True)

        assert "The address of an issue must begin with https://" in page_text(page) and group().issue_url == "", wrong


def test_the_address_of_new_issues_has_places_for_title_and_text(monkeypatch):
    monkeypatch.setenv("ISSUE_URL", "https://github.com/acme/shop/issues/new?title={title}")

    with pytest.raises(ImproperlyConfigured, match="ISSUE_URL"):
        environment.issue_address("ISSUE_URL")


def test_a_group_whose_runs_were_all_retried_is_called_so_on_every_page(operator, clock):
    scenario = Scenario(clock, simple("pay", retries=1))
    scenario.starts("order")
    scenario.worker("pay").fails("502 from gateway 1")
    failure_groups.group_failures(100)

    for address in (INBOX, page_of(group()), "/admin/"):
        found = html(operator.get(address))
        assert '<span class="badge waiting">' in found and "Retried" in found, address
        assert "Retry these runs" not in found, "No run has failed."
    assert "Retried" not in page_text(operator.get(INBOX, {"view": "resolved"}))

    operator.post(page_of(group()), {"do": "acknowledge"})

    assert "Acknowledged" in page_text(operator.get(INBOX)) and "Acknowledged" in page_text(operator.get("/admin/"))


def test_actions_that_are_seldom_needed_are_in_a_menu(operator, scenario):
    head, _, menu = html(operator.get(page_of(group()))).partition('class="page-head"')[2].partition(">More<")

    assert 'id="act-resolve"' in head and "act-ignore" not in head
    assert all(f'id="act-{name}"' in menu for name in ("ignore", "assign", "issue", "merge"))
