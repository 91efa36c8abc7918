"""A report that claims the next task: both are one transaction, and the claim is that of a poll."""

from contextlib import closing

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conductor_app import notifications
from conductor_app.access.authentication import Actor
from conductor_app.access.permissions import ALL_PERMISSIONS
from conductor_app.core.errors import Busy
from conductor_app.events.models import EventDelivery
from conductor_app.notifications import LOCAL_CALLER, PendingWait, WaitingClient, channel, wait_in_thread
from conductor_app.runs.models import Attempt
from conductor_app.tasks.api.serializers import parse_task_result
from conductor_app.tasks.api.tasks import report_result
from conductor_app.tasks.commands import queues as queue_commands
from conductor_app.tasks.commands.claims import NextClaim
from conductor_app.utils import fault_points
from tests.access.users import api_client_of, create_application, grant_access
from tests.builders import simple
from tests.db.round_trips import RoundTrips
from tests.runs.test_statements import Counted
from tests.scenario import ACTOR

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def task(api, clock):
    """Return a task that the worker `ann` holds. A second one waits in its queue."""
    api.define(simple("pay"), simple("ship"))
    api.start(), api.start()
    return api.poll("pay", workerid="ann")[0]


def completion(task: dict) -> dict:
    ids = {name: task[name] for name in ("workflowInstanceId", "taskId")}
    return {**ids, "status": "COMPLETED", "workerId": "ann"}


def complete(api, task: dict):
    return api.post("/tasks/update-v2", completion(task))


def workers_of_open_tasks() -> list[str]:
    """Return the workers of the tasks in the queue: empty for a task that no worker holds."""
    opened = Attempt.objects.filter(queue="pay", status__in=("PENDING", "LEASED")).order_by("id")
    return [attempt.worker if attempt.status == "LEASED" else "" for attempt in opened]


def test_the_report_and_the_claim_are_one_transaction(api, task):
    with CaptureQueriesContext(connection) as captured, Counted() as counted:
        reply = complete(api, task)

    assert (reply.status_code, reply.json()["workerId"]) == (200, "ann")
    assert [query["sql"] for query in captured.captured_queries].count("COMMIT") == 1
    assert counted.count <= (8 if connection.vendor == "postgresql" else 10), counted.statements


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no network.")
def test_the_report_and_the_claim_take_two_round_trips(api, task):
    with RoundTrips() as trips:
        reply = complete(api, task)

    assert reply.status_code == 200
    assert trips.count == 2


def test_a_task_that_the_report_itself_schedules_is_claimed(api, clock):
    api.define(simple("pay"), {**simple("pay"), "taskReferenceName": "again"})
    api.start()
    [first] = api.poll("pay", workerid="ann")

    following = complete(api, first).json()

    assert (following["referenceTaskName"], following["workerId"]) == ("again", "ann")


@pytest.mark.parametrize("operation", [queue_commands.pause_queue, queue_commands.drain_worker])
def test_a_paused_queue_and_a_drained_worker_get_no_task(api, task, operation):
    operation("pay" if operation is queue_commands.pause_queue else "ann", ACTOR)

    assert complete(api, task).status_code == 204
    assert workers_of_open_tasks() == [""]


def test_the_slot_that_the_report_frees_is_taken_by_the_next_task(api, clock):
    api.post("/metadata/taskdefs", [{"name": "pay", "concurrentExecLimit": 1, "ownerEmail": "a@example.com"}])
    api.define(simple("pay"))
    api.start(), api.start()
    [task] = api.poll("pay", workerid="ann", count=5)

    following = complete(api, task)

    assert (following.status_code, workers_of_open_tasks()) == (200, ["ann"])
    assert complete(api, following.json()).status_code == 204


def test_a_rate_limit_holds(api, clock):
    limit = {"rateLimitPerFrequency": 1, "rateLimitFrequencyInSeconds": 60}
    api.post("/metadata/taskdefs", [{"name": "pay", "ownerEmail": "a@example.com", **limit}])
    api.define(simple("pay"))
    api.start(), api.start()
    [task] = api.poll("pay", workerid="ann", count=5)

    assert complete(api, task).status_code == 204
    assert workers_of_open_tasks() == [""]


def test_the_next_task_is_of_the_same_domain(api, clock):
    api.define(simple("pay"))
    for domain in ("eu", "us", "eu"):
        api.start(taskToDomain={"pay": domain})
    [task] = api.poll("pay", workerid="ann", domain="eu")

    following = complete(api, task)

    assert following.json()["domain"] == "eu"
    assert complete(api, following.json()).status_code == 204


def test_a_caller_who_may_not_poll_gets_no_task(api, task, settings):
    shop = create_application("shop")
    grant_access(shop, "WORKFLOW_DEF", api.workflow(task["workflowInstanceId"])["workflowName"], "EXECUTE")
    settings.CONDUCTOR_API_ACCESS = "token"

    assert complete(api_client_of(shop), task).status_code == 204
    assert workers_of_open_tasks() == [""]


def report_for(task: dict, client: WaitingClient = LOCAL_CALLER) -> list:
    actor, result = Actor("test", ALL_PERMISSIONS), parse_task_result(completion(task))
    claim = NextClaim(result.attempt_id, "ann", lambda queue, domain: True, client)
    return wait_in_thread(claim.begin_after(lambda: report_result(result, actor, claim)))


def test_nothing_is_claimed_for_a_worker_that_has_disconnected(api, task):
    assert report_for(task, WaitingClient(lambda: True)) == []

    assert api.get(f"/tasks/{task['taskId']}").json()["status"] == "COMPLETED"
    assert workers_of_open_tasks() == [""]


@pytest.mark.parametrize("point", ["reported", "claimed"])
def test_a_failure_after_the_commit_returns_the_claimed_task_to_its_queue(api, task, point):
    def fail(reached: str) -> None:
        if reached == point:
            raise ZeroDivisionError

    fault_points.set_handler(fail)
    try:
        with pytest.raises(ZeroDivisionError):
            report_for(task)
    finally:
        fault_points.set_handler(None)

    assert api.get(f"/tasks/{task['taskId']}").json()["status"] == "COMPLETED"
    assert workers_of_open_tasks() == [""]


def test_a_fault_before_the_commit_undoes_report_and_claim(api, task):
    def fail_always(point: str) -> None:
        raise Busy(run="order")

    try:
        fault_points.set_handler(fail_always)
        with pytest.raises(Busy):
            report_for(task)
        assert workers_of_open_tasks() == ["ann", ""]
        fault_points.set_handler(None)
        [following] = report_for(task)
    finally:
        fault_points.set_handler(None)

    assert following.run_id != task["workflowInstanceId"]
    assert workers_of_open_tasks() == ["ann"]


def test_a_report_that_a_poll_follows_counts_as_a_poll_of_the_worker(api, task, clock):
    clock.advance(seconds=5)

    complete(api, task)

    [poller] = api.get("/tasks/queue/polldata", taskType="pay").json()
    assert poller["lastPollTime"] == clock.now()


def test_a_start_is_published_as_after_a_poll(api, clock):
    api.define({**simple("pay"), "onStateChange": {"onStart": [{"type": "paid", "payload": {}}]}})
    api.start(), api.start()
    [task] = api.poll("pay", workerid="ann")

    complete(api, task)

    assert EventDelivery.objects.filter(event="conductor:order:paid").count() == 2


def first_wait(task: dict) -> tuple[int, PendingWait]:
    """Report without another task in the queue. Returns the number of claims before the wait, and the wait."""
    actor, result = Actor("test", ALL_PERMISSIONS), parse_task_result(completion(task))
    claim = NextClaim(result.attempt_id, "ann", lambda queue, domain: True, LOCAL_CALLER)
    with (
        closing(claim.begin_after(lambda: report_result(result, actor, claim))) as steps,
        CaptureQueriesContext(connection) as captured,
    ):
        wait = next(steps)
        # Every claim checks that its worker is not drained.
        return sum("conductor_workerhold" in query["sql"] for query in captured.captured_queries), wait


def test_an_empty_queue_is_read_once_before_the_wait(api, task):
    complete(api, task)
    [task] = api.poll("ship", workerid="ann")

    assert first_wait(task)[0] == 1


def test_an_announcement_after_the_claim_leads_to_another_one_before_the_wait(api, task):
    complete(api, task)
    [task] = api.poll("ship", workerid="ann")

    def announce(point: str) -> None:
        if point == "reported":
            notifications.announce(["ship"])

    fault_points.set_handler(announce)
    try:
        assert first_wait(task)[0] == 2
    finally:
        fault_points.set_handler(None)


def test_a_task_that_its_own_transaction_claims_is_not_announced(api, clock, monkeypatch):
    announced: list[str] = []
    monkeypatch.setattr(channel._announcement_listeners, "value", (announced.extend,))
    api.define(simple("pay"), {**simple("pay"), "taskReferenceName": "again"}, simple("ship"))
    api.start()
    [first] = api.poll("pay", workerid="ann")
    announced.clear()

    following = complete(api, first).json()
    assert announced == []

    complete(api, following)
    assert announced == ["ship"]
