"""Migrate a database of the previous version, work on its runs, and print the results of clients and pages.

Usage: `python -m tests.upgrade.verify_upgrade` in a separate process, whose settings name the database.
"""

import json
import sys

import django

RUNS = ("rerun", "loop", "items", "fork", "failed", "pending")
"""The correlation ids of the runs."""
WRITTEN_AT = 1_803_902_400
"""Seconds. The time at which the database was written: its leases have not expired."""
TYPES = ("charge", "count", "item", "left", "right", "pack", "refund")


def main() -> None:
    django.setup()
    stop_the_clock()
    from django.core.management import call_command
    from django.test import Client

    call_command("migrate", verbosity=0)
    client = Client(SERVER_NAME="127.0.0.1")
    report = {"before": statuses(client)}
    fail_item_and_retry(client)
    work_off(client)
    report["after"] = statuses(client)
    report["firings"] = publish_alerts()
    report["pages"] = pages(client)
    report["rights"] = rights()
    json.dump(report, sys.stdout)


def stop_the_clock() -> None:
    from conductor_app.utils import clock

    clock._source = lambda: WRITTEN_AT * 1_000_000_000


def statuses(client) -> dict[str, str]:
    return {name: client.get(f"/api/workflow/{id}").json()["status"] for name, id in run_ids().items()}


def run_ids() -> dict[str, str]:
    from conductor_app.runs.models import Run

    return dict(Run.objects.filter(correlation_id__in=RUNS).values_list("correlation_id", "pk"))


def work_off(client) -> None:
    """Release all claimed tasks, then complete every task that a worker can claim."""
    from conductor_app.runs.models import Attempt
    from conductor_app.tasks.commands import queues as queue_commands

    for attempt in Attempt.objects.leased():
        queue_commands.take_from_worker(attempt.pk, "kim", "upgrade")
    while sum(complete_one(client, type) for type in TYPES):
        pass


def fail_item_and_retry(client) -> None:
    """Fail the run `items` and retry it, so that its ended items are counted again."""
    run_id = run_ids()["items"]
    [task] = client.get("/api/tasks/poll/batch/item", {"workerid": "new", "count": "1", "timeout": "0"}).json()
    result = {"workflowInstanceId": run_id, "taskId": task["taskId"], "status": "FAILED_WITH_TERMINAL_ERROR"}
    assert client.post("/api/tasks", result, content_type="application/json").status_code == 200
    assert statuses(client)["items"] == "FAILED"
    assert client.post(f"/api/workflow/{run_id}/retry").status_code == 204


def complete_one(client, type: str) -> bool:
    tasks = client.get(f"/api/tasks/poll/batch/{type}", {"workerid": "new", "count": "1", "timeout": "0"}).json()
    for task in tasks:
        result = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"], "status": "COMPLETED"}
        assert client.post("/api/tasks", result, content_type="application/json").status_code == 200
    return bool(tasks)


def publish_alerts() -> list[tuple[int, str]]:
    """Send the alert that waits in the outbox, and return the tries and the error that the page of the alert shows."""
    from conductor_app.alerts.models import AlertFiring
    from conductor_app.events.workers.publisher import publish_due_events

    publish_due_events()
    return list(AlertFiring.objects.values_list("tries", "error"))


def pages(client) -> dict[str, int | bool]:
    from django.contrib.auth.models import User

    from conductor_app.taskcluster.models import StandaloneTask

    client.force_login(User.objects.create_superuser("root"))
    found = {}
    for name, id in run_ids().items():
        page = client.get(f"/admin/conductor/run/{id}/change/?tab=events")
        found[name] = page.status_code == 200 and b"run" in page.content
    task = StandaloneTask.objects.get()
    found["standalone"] = client.get(f"/admin/conductor/standalonetask/{task.pk}/change/").status_code
    found["group"] = client.get(f"/admin/conductor/taskgroup/{task.group_id}/change/").status_code
    return found


def rights() -> dict[str, bool]:
    from django.contrib.auth.models import User

    names = ("view_standalonetask", "change_standalonetask", "view_taskgroup", "view_run", "change_run")
    kim = User.objects.get(username="kim")
    return {name: kim.has_perm(f"conductor.{name}") for name in names}


if __name__ == "__main__":
    main()
