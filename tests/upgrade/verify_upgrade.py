"""Migrate a database written by version 0.1, work on its runs, and print the results of clients and pages.

Usage: `VAR_DIR=… python -m tests.upgrade.verify_upgrade`, in a separate process.
"""

import json
import os
import sys

import django

COMPLETED, LOOP, FORK = (
    "01a20832-b103-73b7-ae26-a4b84762f06b",
    "01a20832-b5c9-72ad-bdca-dcfbe9cb6198",
    "01a20832-b6ca-7868-8565-3b9716b6e511",
)
FAILED, PENDING = "01a20832-b4ff-7167-af49-dbddc8ed6ca1", "01a20832-b9d2-7019-9552-22c57c1e7541"
RUNS = {"rerun": COMPLETED, "loop": LOOP, "fork": FORK, "failed": FAILED, "pending": PENDING}
WRITTEN_AT = 1_795_433_900
"""Seconds. The time just after the database was written: its leases have not expired."""
STANDALONE = "MzByh6yyTo2qjgRsUAn_qw"
TYPES = ("charge", "count", "left", "right", "pack", "refund")


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "conductor_app.settings.embedded"
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
    from conductor_app import clock

    clock._source = lambda: WRITTEN_AT * 1_000_000_000


def statuses(client) -> dict[str, str]:
    return {name: client.get(f"/api/workflow/{id}").json()["status"] for name, id in RUNS.items()}


def work_off(client) -> None:
    """Release all claimed tasks, then complete every task that a worker can claim."""
    from conductor_app.engine.queues import queue_commands
    from conductor_app.models import Attempt

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

    client.force_login(User.objects.create_superuser("root"))
    found = {}
    for name, id in RUNS.items():
        page = client.get(f"/admin/conductor/run/{id}/change/?tab=events")
        found[name] = page.status_code == 200 and b"run" in page.content
    history = client.get(f"/admin/conductor/run/{COMPLETED}/change/?tab=events").content
    found["history in words"] = not any(name in history for name in (b"TakeBack", b"DeleteTasks", b"MoveRun"))
    found["standalone"] = client.get(f"/admin/conductor/standalonetask/{STANDALONE}/change/").status_code
    found["group"] = client.get(f"/admin/conductor/taskgroup/{STANDALONE}/change/").status_code
    return found


def rights() -> dict[str, bool]:
    from django.contrib.auth.models import User

    names = ("view_standalonetask", "change_standalonetask", "view_taskgroup", "view_run", "change_run")
    kim = User.objects.get(username="kim")
    return {name: kim.has_perm(f"conductor.{name}") for name in names}


if __name__ == "__main__":
    main()
