"""Load through a pooler: `python -m tests.db.pooled_load` starts runs and serves them in several threads.

It prints how many runs completed, and the status codes of searches and pages.
"""

import json
import os
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

THREADS, RUNS = 6, 5
STEPS = ["pooled_0", "pooled_1"]


def main() -> None:
    import django

    django.setup()
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    settings.CONDUCTOR_API_ACCESS = "open"

    def send(client: Client, method: str, address: str, body: object = None) -> bytes:
        data = b"" if body is None else json.dumps(body)
        reply = client.generic(method, f"/api/{address}", data, content_type="application/json")
        assert reply.status_code == 200, (address, reply.status_code, reply.content[:500])
        return reply.content

    def serve(_: int) -> list[str]:
        client, started = Client(), []
        for number in range(RUNS):
            started.append(send(client, "POST", "workflow/pooled", {"order": number}).decode())
            for step in STEPS:
                for task in json.loads(send(client, "GET", f"tasks/poll/batch/{step}?workerid=w&count=2&timeout=0")):
                    ids = {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"]}
                    send(client, "POST", "tasks", {**ids, "status": "COMPLETED", "outputData": {"done": True}})
        return started

    client = Client()
    tasks = [{"name": step, "taskReferenceName": step, "type": "SIMPLE"} for step in STEPS]
    document = {"name": "pooled", "version": 1, "schemaVersion": 2, "tasks": tasks, "ownerEmail": "a@example.org"}
    send(client, "PUT", "metadata/workflow", [document])
    with ThreadPoolExecutor(THREADS) as threads:
        runs = [run for started in threads.map(serve, range(THREADS)) for run in started]
    while any(json.loads(send(client, "GET", f"tasks/queue/sizes?taskType={step}"))[step] for step in STEPS):
        serve(0)
    statuses = Counter(json.loads(send(client, "GET", f"workflow/{run}/status"))["status"] for run in runs)
    client.force_login(User.objects.create(username="pooled", is_staff=True, is_superuser=True))
    addresses = ["/api/workflow/search?query=status=COMPLETED", "/api/tasks/search?query=status=COMPLETED", "/admin/"]
    addresses += ["/admin/conductor/run/", "/admin/system/", f"/admin/conductor/run/{runs[0]}/change/"]
    print(json.dumps({"runs": statuses, "pages": [client.get(address).status_code for address in addresses]}))


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conductor_app.settings.cluster")
    sys.exit(main())
