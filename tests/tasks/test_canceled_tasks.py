"""Workers that learn that their task has ended without them: by the reply to a report, or by waiting for it."""

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conductor_app import notifications
from conductor_app.access.commands.applications import create_key_of
from conductor_app.runs.models import Attempt
from conductor_app.tasks.commands import waits
from tests.api_fixtures import Api
from tests.builders import simple
from tests.clients.wait_until import eventually

LONG = 60.0


@pytest.fixture
def task(api, clock):
    """Return a claimed task; another task follows it."""
    api.define(simple("pay"), simple("ship"))
    api.start()
    return api.poll("pay")[0]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable periodic checks, so that only notifications can end a wait."""
    monkeypatch.setattr(waits, "MAX_POLL_INTERVAL", LONG)


def terminate(api: Api, task: dict[str, Any]) -> None:
    assert api.delete(f"/workflow/{task['workflowInstanceId']}").status_code == 200


def while_waiting(wait: Callable[[], Any], act: Callable[[], Any]) -> Any:
    """Return the result of `wait`, which begins in a thread of its own before `act`."""
    found: list[Any] = []

    def run() -> None:
        found.append(wait())
        connection.close()

    before = notifications.count_waiting()
    thread = Thread(target=run, daemon=True)
    thread.start()
    eventually(lambda: notifications.count_waiting() > before)
    act()
    thread.join(10)
    [result] = found
    return result


@pytest.mark.parametrize("fields", [{"extendLease": True}, {}], ids=["lease extension", "report"])
def test_a_worker_that_supports_cancellation_gets_its_canceled_task(api, task, fields):
    terminate(api, task)

    reply = api.report(task, "IN_PROGRESS", supportsCancellation=True, **fields)

    assert (reply.status_code, reply["Content-Type"]) == (200, "application/json")
    assert (reply.json()["taskId"], reply.json()["status"]) == (task["taskId"], "CANCELED")


@pytest.mark.parametrize("fields", [{"extendLease": True}, {}], ids=["lease extension", "report"])
def test_a_worker_that_does_not_support_cancellation_gets_the_usual_reply(api, task, fields):
    terminate(api, task)

    reply = api.report(task, "IN_PROGRESS", **fields)

    assert (reply.status_code, reply.content.decode()) == (200, task["taskId"])


@pytest.mark.parametrize("fields", [{"extendLease": True}, {"callbackAfterSeconds": 9}], ids=["extension", "report"])
def test_a_task_that_goes_on_has_the_usual_reply(api, task, fields):
    reply = api.report(task, "IN_PROGRESS", supportsCancellation=True, **fields)

    assert (reply.status_code, reply.content.decode()) == (200, task["taskId"])


def test_a_repeated_result_has_the_usual_reply(api, task):
    api.report(task)

    reply = api.report(task, supportsCancellation=True)

    assert (reply.status_code, reply.content.decode()) == (200, task["taskId"])


def test_a_result_after_the_end_of_the_task_gets_the_task(api, task):
    api.report(task, "FAILED_WITH_TERMINAL_ERROR")

    reply = api.report(task, supportsCancellation=True)

    assert reply.json()["status"] == "FAILED_WITH_TERMINAL_ERROR"


def test_a_report_with_next_gets_the_canceled_task_and_claims_none(api, task):
    terminate(api, task)
    api.start()
    result = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"], "status": "COMPLETED"}

    reply = api.post("/tasks/update-v2", {**result, "supportsCancellation": True})
    usual = api.post("/tasks/update-v2", result)

    assert (reply.json()["taskId"], reply.json()["status"]) == (task["taskId"], "CANCELED")
    assert usual.json()["taskId"] != task["taskId"]


def test_a_caller_who_may_not_see_the_task_gets_the_usual_reply(api, task, settings):
    terminate(api, task)
    settings.CONDUCTOR_API_ACCESS = "token"
    id, secret = create_key_of("stranger", (), "tester")
    token = api.post("/token", {"keyId": id, "keySecret": secret}).json()["token"]
    result = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"], "status": "COMPLETED"}

    reply = api.post("/tasks", {**result, "supportsCancellation": True}, **{"X-Authorization": token})

    assert reply.content.decode() == task["taskId"]


def test_the_flag_costs_a_report_that_is_in_time_no_statement(api, task):
    other = Api()
    other.start()
    [second] = other.poll("pay")

    with CaptureQueriesContext(connection) as plain:
        api.report(task)
    with CaptureQueriesContext(connection) as flagged:
        api.report(second, supportsCancellation=True)

    assert len(flagged) == len(plain)


def test_the_end_of_a_task_ends_the_wait_for_it(api, task, patient):
    waiting = while_waiting(
        lambda: Api().get(f"/tasks/{task['taskId']}", waitForStatus="CANCELED", waitForSeconds=60),
        lambda: terminate(api, task),
    )

    assert (waiting.status_code, waiting.json()["status"]) == (200, "CANCELED")


def test_a_wait_for_another_status_ends_with_the_task(api, task, patient):
    waiting = while_waiting(
        lambda: Api().get(f"/tasks/{task['taskId']}", waitForStatus="CANCELED,TIMED_OUT", waitForSeconds=60),
        lambda: api.report(task),
    )

    assert waiting.json()["status"] == "COMPLETED"


def test_a_released_task_ends_the_wait_for_its_queue(api, task, patient):
    waiting = while_waiting(
        lambda: Api().get(f"/tasks/{task['taskId']}", waitForStatus="SCHEDULED", waitForSeconds=60),
        lambda: api.report(task, "IN_PROGRESS", callbackAfterSeconds=60),
    )

    assert waiting.json()["status"] == "SCHEDULED"


def test_a_lease_extension_does_not_wake_a_wait(api, task, patient):
    woken: list[str] = []
    notifications.on_announce(woken.extend)

    while_waiting(
        lambda: Api().get(f"/tasks/{task['taskId']}", waitForSeconds=60),
        lambda: (api.report(task, "IN_PROGRESS", extendLease=True), woken.append("extended"), api.report(task)),
    )

    topic = notifications.broadcast_topic(task["taskId"])
    assert woken.index(topic) > woken.index("extended")


def test_a_wait_whose_time_is_over_returns_the_task_as_it_is(api, task):
    for query in ({"waitForSeconds": 0}, {"waitForStatus": "IN_PROGRESS"}, {"waitForStatus": "in_progress,CANCELED"}):
        reply = api.get(f"/tasks/{task['taskId']}", **query)

        assert (reply.status_code, reply.json()["status"]) == (200, "IN_PROGRESS")


def test_a_removed_task_is_not_found(api, task, patient):
    waiting = while_waiting(
        lambda: Api().get(f"/tasks/{task['taskId']}", waitForSeconds=60),
        lambda: (
            Attempt.objects.filter(pk=task["taskId"]).delete(),
            notifications.announce([notifications.broadcast_topic(task["taskId"])]),
        ),
    )

    assert waiting.status_code == 404


@pytest.mark.parametrize("query", [{"waitForStatus": "STOPPED"}, {"waitForSeconds": "soon"}])
def test_an_invalid_wait_is_refused(api, task, query):
    assert api.get(f"/tasks/{task['taskId']}", **query).status_code == 400


def test_a_request_without_a_wait_marks_nothing(api, task):
    with CaptureQueriesContext(connection) as counted:
        api.get(f"/tasks/{task['taskId']}")

    assert not [each["sql"] for each in counted if each["sql"].startswith("UPDATE")]
