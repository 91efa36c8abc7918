"""Migrate a database of the previous version, work on its runs, and print the results of clients and pages.

Usage: `python -m tests.upgrade.verify_upgrade` in a separate process, whose settings name the database.
"""

import json
import sys

import django

RUNS = ("rerun", "loop", "fork", "failed", "pending")
"""The correlation ids of the runs."""
WRITTEN_AT = 1_803_902_400
"""Seconds. The time at which the database was written: its leases have not expired."""
TYPES = ("charge", "count", "left", "right", "pack", "refund")


def main() -> None:
    django.setup()
    stop_the_clock()
    from django.core.management import call_command
    from django.test import Client

    call_command("migrate", verbosity=0)
    client = Client(SERVER_NAME="127.0.0.1")
    report = {"before": statuses(client)}
    work_off(client)
    report["after"] = statuses(client)
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


def complete_one(client, type: str) -> bool:
    tasks = client.get(f"/api/tasks/poll/batch/{type}", {"workerid": "new", "count": "1", "timeout": "0"}).json()
    for task in tasks:
        result = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"], "status": "COMPLETED"}
        assert client.post("/api/tasks", result, content_type="application/json").status_code == 200
    return bool(tasks)


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
