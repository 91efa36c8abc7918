"""Requests to a server with a replica: `python -m tests.db.replica_requests` prints what each of them showed.

The replica's replay is paused, so that it lacks what is written afterwards.
"""

import json
import os
import sys

import psycopg

PAGES = [
    "",
    "conductor/run/",
    "queues/",
    "workers/",
    "failures/",
    "human-tasks/",
    "conductor/schedule/",
]


def main() -> None:
    import django

    django.setup()
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    from conductor_app.db import replica

    settings.CONDUCTOR_API_ACCESS = "open"
    user = User.objects.create(username="reader", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(user)
    control = psycopg.connect(os.environ["DATABASE_REPLICA_URL"], autocommit=True)
    seen = {}

    def search() -> int:
        return client.get("/api/workflow/search").json()["totalHits"]

    def start(name: str) -> str:
        reply = client.post(f"/api/workflow/{name}", {}, content_type="application/json")
        assert reply.status_code == 200, reply.content
        return reply.content.decode()

    def measure() -> None:
        replica.cached_state.reset()

    step = {"name": "step", "taskReferenceName": "step", "type": "SIMPLE"}
    document = {"name": "flow", "version": 1, "schemaVersion": 2, "tasks": [step], "ownerEmail": "a@example.org"}
    client.put("/api/metadata/workflow", json.dumps([document]), content_type="application/json")
    first = start("flow")
    while not control.execute("SELECT 1 FROM conductor_run WHERE id = %s", [first]).fetchone():
        pass
    seen["lag"] = replica.measure_state().lag_seconds
    control.execute("SELECT pg_wal_replay_pause()")
    second = start("flow")
    state = replica.cached_state.value
    state._state, state._checked_at = replica.ReplicaState(0.0), float("inf")
    seen["search on the replica"] = search()
    seen["page on the replica"] = second in client.get("/admin/conductor/run/").content.decode()
    seen["command reads the primary"] = client.get(f"/api/workflow/{second}").status_code
    seen["pages"] = {path: client.get(f"/admin/{path}").status_code for path in PAGES}
    seen["still on the replica"] = search()
    client.post("/admin/preferences/", {})
    seen["search after a command of a page"] = search()
    client.cookies.pop("reads_primary")
    measure()
    settings.CONDUCTOR_REPLICA_MAX_LAG_SECONDS = -1
    seen["search beyond the limit"] = search()
    settings.CONDUCTOR_REPLICA_MAX_LAG_SECONDS = 1000
    ready = {check["name"]: check for check in client.get("/health/ready").json()["checks"]}
    seen["health"] = ready["replica"]["healthy"]
    seen["metrics"] = "conductor_replica_up" in client.get("/metrics").content.decode()
    seen["system page"] = "behind" in client.get("/admin/system/").content.decode()
    control.execute("SELECT pg_wal_replay_resume()")
    for line in [os.environ["STOP_REPLICA"]]:
        os.system(line)
    seen["search without the replica"] = search()
    seen["state without the replica"] = replica.measure_state().lag_seconds
    print(json.dumps(seen))


if __name__ == "__main__":
    sys.exit(main())
