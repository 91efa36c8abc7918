"""The Python SDK's worker is served by fairness keys, without knowing them."""

import json
from urllib.request import Request, urlopen

from tests.clients.shop_workflow import Shop, serve_tasks, worker


def put(url: str, document: object) -> None:
    request = Request(url, json.dumps(document).encode(), {"Content-Type": "application/json"}, method="PUT")
    urlopen(request, timeout=30).close()


def test_a_worker_gets_the_first_task_of_a_tenant_before_the_remaining_ones_of_another(
    server: str, shop: Shop, configuration
):
    given = {"tenant": "${workflow.input.tenant}"}
    task = {"name": "pack", "taskReferenceName": "pack", "type": "SIMPLE", "inputParameters": given}
    written = {"name": "order", "version": 1, "tasks": [task], "fairnessKey": "${workflow.input.tenant}"}
    put(f"{server}/api/metadata/workflow", [written])
    assert shop.metadata.get_workflow_def("order", version=1).tasks[0].name == "pack"
    runs = [shop.start(input={"tenant": tenant}) for tenant in [*["busy"] * 12, "small"]]
    served = []

    def pack(tenant: str) -> dict:
        served.append(tenant)
        return {}

    with serve_tasks(configuration, worker("pack", pack)):
        ended = [shop.wait_for_end(run_id).status for run_id in runs]

    assert set(ended) == {"COMPLETED"}
    assert len(served) == 13
    assert "small" in served[:3]
