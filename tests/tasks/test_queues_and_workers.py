"""Queue and worker pages: why work is stuck, which workers are connected, and the available actions."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.runs.models import Attempt, TaskLog
from conductor_app.tasks.models import MinuteCount, Poller, QueueHold, WorkerHold
from conductor_app.tasks.queries import queues as queue_insight
from conductor_app.tasks.queries import workers
from tests.builders import policy, simple, step
from tests.page_text import html, page_text
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db
QUEUES, WORKERS = "/admin/queues/", "/admin/workers/"


def queue(name: str) -> str:
    return f"/admin/queue/?name={name}"


@pytest.fixture
def limited(clock) -> Scenario:
    """Return a scenario in which one of three tasks is claimed and the limit blocks the others."""
    scenario = Scenario(clock, simple("ship"), tasks=[policy("ship", concurrent_limit=1)])
    for _ in range(2):
        clock.advance(seconds=1)
        scenario.starts("order")
    scenario.worker("ship", "van@7").polls()
    return scenario


def test_the_list_displays_the_state_the_incoming_rate_and_the_limit_of_each_queue(operator, limited, clock):
    clock.advance(seconds=6)
    limited.starts("order")
    page = page_text(operator.get(QUEUES))

    assert "ship" in page and "Throttled" in page and "Incoming" in page and "1 / 1" in page
    operator.post(queue("ship"), {"do": "pause"})
    assert "Paused" in page_text(operator.get(QUEUES))


def test_a_queue_lists_holders_of_its_limit_and_pending_tasks_in_order(operator, limited):
    page = page_text(operator.get(queue("ship")))

    assert "Throttled by a limit." in page
    assert "1 of 1 in progress (concurrentExecLimit)" in page
    assert "van@7" in page.split("Limits")[1].split("Waiting, in the order")[0]
    assert "2 now" in page


def test_a_queue_without_workers_counts_none(operator, limited, clock):
    clock.advance(seconds=61)

    [charge] = [row for row in operator.get("/admin/queues/").context["queues"] if row["queue"].pending]

    assert "No workers" in charge["state"] and charge["queue"].pollers == 0


def test_the_average_duration_is_not_a_property_of_completed_tasks(operator, clock):
    scenario = Scenario(clock, step("ship"))
    scenario.worker("ship").polls()
    clock.advance(seconds=300)
    scenario.worker("ship").fails("out of fuel")

    text = page_text(operator.get(queue("ship")))
    assert "5 min per attempt" in text


def test_a_queue_is_paused_for_a_while_and_resumed(operator, limited, clock):
    operator.post(queue("ship"), {"do": "pause", "minutes": "30", "reason": "the van burns"})

    assert QueueHold.objects.get().until_at == clock.now() + 30 * 60_000
    assert "Paused by olga until 2027-03-01" in page_text(operator.get(queue("ship")))
    assert AuditEntry.objects.get(object_type="queue").reason == "the van burns"
    operator.post(queue("ship"), {"do": "resume"})
    assert not QueueHold.objects.exists()


def test_pending_tasks_get_another_position_priority_and_domain(operator, limited):
    last = Attempt.objects.pending("ship").order_by("visible_at").last()

    operator.post(queue("ship"), {"do": "front", "attempt": last.pk, "reason": "a good customer"})
    assert Attempt.objects.pending("ship").order_by("-priority", "visible_at").first().pk == last.pk
    operator.post(queue("ship"), {"do": "priority", "attempt": last.pk, "priority": "9"})
    operator.post(queue("ship"), {"do": "domain", "attempt": last.pk, "domain": "east"})

    moved = Attempt.objects.get(pk=last.pk)
    assert (moved.priority, moved.queue) == (9, "east:ship")


def test_hostile_forms_of_a_queue_are_answered(operator, limited):
    for form in [
        {},
        {"do": "dance"},
        {"do": "pause", "minutes": "-1"},
        {"do": "pause", "minutes": "9" * 30},
        {"do": "pause", "minutes": "000000001" + "9" * 30},
        {"do": "front", "attempt": "nobody"},
        {"do": "priority", "attempt": "nobody", "priority": "x"},
        {"do": "domain", "attempt": "nobody", "domain": "\0"},
        {"do": "resume"},
    ]:
        assert operator.post(queue("ship"), form, follow=True).status_code == 200, form
        assert not QueueHold.objects.exists(), form


def test_a_nul_in_a_form_is_removed(operator, limited):
    operator.post(queue("sh%00ip"), {"do": "pause", "reason": "the van\0 burns"})

    assert QueueHold.objects.get(queue="ship").reason == "the van burns"


def test_a_nul_or_line_break_in_an_address_is_not_found(operator):
    for address in [
        "/admin/webhooks/x%00/",
        "/admin/conductor/run/%00/change/",
        "/admin/conductor/variable/%00/",
        "/admin/conductor/run/export.%0a",
        "/admin/why-waiting/%00/",
    ]:
        assert operator.get(address).status_code == 404, address


def test_an_empty_queue_is_labeled_and_a_nameless_one_is_not_found(operator):
    page = page_text(operator.get(queue("none")))

    assert "Empty." in page and "No worker has ever polled this queue" in page
    assert operator.get("/admin/queue/").status_code == 404


def test_workers_are_listed_with_their_work(operator, limited, clock):
    limited.worker("ship", "van@7").fails("no petrol")
    clock.advance(seconds=6)
    limited.worker("ship", "van@7").polls()
    page = page_text(operator.get(WORKERS))

    assert "van@7 Online" in page
    assert "7 ship 1 0 1 100 %" in page

    clock.advance(seconds=3600)
    assert "Offline" in page_text(operator.get(WORKERS))


def test_recent_workers_are_listed_and_all_are_searchable_by_name_or_task_type(operator, limited, monkeypatch):
    monkeypatch.setattr(workers, "MAX_SHOWN", 1)
    for type, name in (("pack", "box@7"), ("pack", "box@8")):
        Poller.objects.create(task_type=type, worker=name, polled_at=1)
    page = page_text(operator.get(WORKERS))

    assert "van@7" in page and "box@" not in page
    assert "The 1 that polled last are listed. 2 more can be found by their names." in page
    assert "7 pack 1 0 0" in page, "the builds are those of all workers"
    assert "box@8" in page_text(operator.get(WORKERS, {"q": "OX@8"}))
    assert "van@7" in page_text(operator.get(WORKERS, {"q": "ship"}))
    assert "No results" in page_text(operator.get(WORKERS, {"q": "train\0"}))


def test_builds_with_one_name_are_different_ones_if_their_workers_poll_different_queues(operator, limited, clock):
    for type, name in (("pack", "box@7"), ("pack", "bag@7")):
        Poller.objects.create(task_type=type, worker=name, polled_at=clock.now())

    page = page_text(operator.get(WORKERS))

    assert "7 pack 2 0 0" in page and "7 ship 1 0 0" in page


def test_the_first_uses_of_builds_name_the_task_if_there_are_several_programs(limited, clock):
    for name in ("van@7", "box@7"):
        MinuteCount.objects.create(kind=MinuteCount.WORKER, name=name, at=clock.now())
    assert list(workers.first_uses_of_builds(["van@7", "box@7"])) == ["7"]

    for type in ("pack", "wrap"):
        Poller.objects.create(task_type=type, worker="box@7", polled_at=clock.now())

    assert list(workers.first_uses_of_builds(["van@7", "box@7"])) == ["7 (pack +1)", "7 (ship)"]


def test_an_action_on_a_worker_returns_to_its_search(operator, limited):
    assert 'action="/admin/workers/?q=van"' in html(operator.get(WORKERS, {"q": "van"}))
    assert operator.post(f"{WORKERS}?q=van", {"worker": "van@7", "do": "drain"})["Location"] == f"{WORKERS}?q=van"


def test_a_queue_counts_claimed_tasks_and_lists_the_first(operator, clock, monkeypatch):
    monkeypatch.setattr(queue_insight, "MAX_RUNNING", 1)
    scenario = Scenario(clock, simple("ship"))
    for name in ("van@7", "van@8"):
        scenario.starts("order")
        scenario.worker("ship", name).polls()
    page = page_text(operator.get(queue("ship"))).split("In progress")[1].split("Pollers")[0]

    assert "2 now" in page and "van@7" in page and "van@8" not in page and "The first one is listed." in page


def test_a_page_without_workers_explains_how_to_start_one(operator):
    assert "CONDUCTOR_SERVER_URL=http://testserver/api" in page_text(operator.get(WORKERS))


def test_a_worker_is_drained_released_and_deleted(operator, limited, clock):
    operator.post(WORKERS, {"worker": "van@7", "do": "drain", "reason": "its host is replaced"})
    assert "Draining" in page_text(operator.get(WORKERS))
    operator.post(WORKERS, {"worker": "van@7", "do": "release"})
    assert Attempt.objects.filter(status="LEASED").count() == 0
    assert limited.worker("ship", "van@8").polls() == ["ship"]

    operator.post(WORKERS, {"worker": "van@7", "do": "undrain"})
    assert not WorkerHold.objects.exists()
    operator.post(WORKERS, {"worker": "van@7", "do": "remove"})
    assert not Poller.objects.filter(worker="van@7").exists()
    assert AuditEntry.objects.filter(object_type="worker").count() == 4


def test_hostile_forms_of_workers_are_answered(operator, limited):
    for form in [{}, {"do": "drain"}, {"do": "remove", "worker": "x"}, {"do": "undrain", "worker": "x"}]:
        assert operator.post(WORKERS, form, follow=True).status_code == 200, form
        assert not WorkerHold.objects.exists(), form


def test_a_viewer_sees_groups_and_cannot_act(viewer, limited):
    assert 'name="do"' not in html(viewer.get(queue("ship")))
    assert 'name="do"' not in html(viewer.get(WORKERS))
    assert viewer.post(queue("ship"), {"do": "pause"}).status_code == 403
    assert viewer.post(WORKERS, {"do": "drain", "worker": "van@7"}).status_code == 403


def test_a_poll_without_changes_returns_nothing(operator, limited):
    for address in (f"{QUEUES}live/", "/admin/queue/live/?name=ship", f"{WORKERS}live/"):
        revision = operator.get(address)["X-Revision"]
        assert operator.get(f"{address}{'&' if '?' in address else '?'}rev={revision}").status_code == 204


def test_pages_of_queues_and_workers_take_few_queries(operator, limited, django_assert_max_num_queries):
    operator.get(QUEUES)
    for address in (QUEUES, queue("ship"), WORKERS):
        with django_assert_max_num_queries(15):
            operator.get(address)


def test_work_without_a_limit_has_none(operator, clock):
    Scenario(clock, step("pay"))

    page = page_text(operator.get(queue("pay")))
    assert "Limits" not in page and "No worker has ever polled this queue: 1 queued" in page


def test_a_queue_whose_workers_are_gone_says_since_when_on_its_page_and_on_the_overview(operator, clock):
    Scenario(clock, step("pay"))
    Poller.objects.create(task_type="pay", worker="w", polled_at=clock.now() - 3 * 3_600_000)

    assert "No worker has polled for 3 h: 1 queued" in page_text(operator.get(queue("pay")))
    assert "No worker has polled pay for 3 h: 1 pending" in page_text(operator.get("/admin/"))


def test_pending_tasks_are_delayed_and_canceled_permanently(operator, limited, clock):
    first, last = Attempt.objects.pending("ship").order_by("visible_at")

    operator.post(queue("ship"), {"do": "hold", "attempt": first.pk, "minutes": "30", "reason": "its parcel is lost"})
    held = page_text(operator.get(queue("ship")))
    operator.post(queue("ship"), {"do": "cancel", "attempt": last.pk, "reason": "nobody wants it"})

    assert Attempt.objects.get(pk=first.pk).visible_at == clock.now() + 30 * 60_000
    assert "1 delayed" in held
    assert list(Attempt.objects.filter(task=last.task_id).values_list("status", flat=True)) == ["CANCELED"]
    assert AuditEntry.objects.get(action="cancel task").reason == "nobody wants it"


def test_both_rates_of_a_queue_cover_the_same_minutes(operator, clock):
    scenario = Scenario(clock, step("pay"))
    clock.advance(seconds=6)
    scenario.worker("pay").completes()
    clock.advance(seconds=6)

    page = operator.get(QUEUES)
    [row] = [row for row in page.context["queues"] if row["queue"].name == "pay"]

    assert row["in"] == row["rate"] != "–"
    assert "Incoming 5 min Dispatched 5 min" in page_text(page)


@pytest.mark.parametrize(("off", "said"), [(60, "ahead by 1 min"), (-90, "behind by 1 min 30 s"), (4, ""), (-4, "")])
def test_a_worker_with_clock_skew_is_marked(operator, limited, clock, off, said):
    held = Attempt.objects.get(status="LEASED")
    TaskLog.objects.create(attempt_id=held.pk, at=clock.now() + off * 1000, line="on my way")
    page = page_text(operator.get(WORKERS))

    assert (f"clock {said}" in page) if said else ("clock ahead" not in page and "clock behind" not in page)


def test_the_lines_of_a_former_claim_say_nothing_about_the_clock_of_a_worker(operator, clock):
    scenario = Scenario(clock, simple("ship"))
    van = scenario.worker("ship", "van@7")
    van.polls()
    TaskLog.objects.create(attempt_id=scenario.task("ship").pk, at=clock.now(), line="on my way")
    van.fail_terminally("flat tire")
    clock.advance(seconds=455)

    scenario.rerun("ship")
    van.polls()

    assert TaskLog.objects.get().attempt_id == scenario.task("ship").pk
    assert "clock behind" not in page_text(operator.get(WORKERS))


def count_minute(clock, kind: str, name: str, hours_ago: int, **counts: int) -> None:
    MinuteCount.objects.create(kind=kind, name=name, at=(clock.now() // 60_000 - hours_ago * 60) * 60_000, **counts)


def test_the_chart_of_a_queue_marks_the_first_use_of_a_new_build(operator, limited, clock):
    limited.worker("ship", "van@8").polls()
    count_minute(clock, "worker", "van@7", 30, done=1)
    count_minute(clock, "worker", "van@8", 3, done=1)
    count_minute(clock, "queue", "ship", 3, done=4, failed=1, busy_ms=5_000)

    page = operator.get(queue("ship"), {"name": "ship", "range": "24h"})

    chart = page.context["chart"]
    assert [marker.label for marker in chart.markers] == ["build 8"]
    assert [row["values"] for row in chart.bars if row["markers"]] == [["4", "1"]]
    assert "Completed 4 Failed 1" in page_text(page) and "1.0 s per attempt" in page_text(page)
    assert 'href="?name=ship&amp;range=7d"' in html(page)


def test_a_worker_has_a_page_with_its_state_and_its_attempts_over_time(
    operator, limited, clock, django_assert_max_num_queries
):
    count_minute(clock, "worker", "van@7", 40, done=3)
    with django_assert_max_num_queries(15):
        page = operator.get("/admin/worker/", {"name": "van@7", "range": "7d"})

    assert "State Online" in page_text(page) and "Completed 3" in page_text(page)
    assert "Build 7" in page_text(page) and 'href="/admin/queue/?name=ship"' in html(page)
    assert 'href="/admin/worker/?name=van%407"' in html(operator.get(WORKERS))
    assert "has not polled lately" in page_text(operator.get("/admin/worker/", {"name": "unknown"}))
    assert operator.get("/admin/worker/").status_code == 404
