"""What a caller learns about objects that it may not read: nothing, neither from lists nor from errors."""

import pytest

from conductor_app.definitions.simulation import commands as simulation
from tests.access.users import api_client_of, create_application, grant_access
from tests.builders import simple

TAG = {"key": "customer", "value": "ACME", "type": "METADATA"}


def workflow_document(name, *tasks):
    return {"name": name, "version": 1, "schemaVersion": 2, "tasks": list(tasks)}


@pytest.fixture(autouse=True)
def required_logins(with_logins, clock):
    pass


@pytest.fixture
def bank():
    """Return the client of an administrator with a definition that has a tag."""
    client = api_client_of(create_application("bank", "ADMIN"))
    client.post("/metadata/workflow", workflow_document("bank_order", simple("pay")))
    client.post("/metadata/workflow/bank_order/tags", TAG)
    return client


@pytest.fixture
def shop():
    return create_application("shop")


def start(client, name="bank_order", **fields):
    return client.post("/workflow", {"name": name, **fields}).content.decode()


def test_tags_are_listed_with_the_objects_that_the_caller_may_read(bank, shop):
    secret = {"key": "owner", "value": "ops", "type": "METADATA"}
    bank.put("/secrets/db", b"value")
    bank.put("/secrets/db/tags", [secret])

    assert api_client_of(shop).get("/metadata/tags").json() == []
    grant_access(shop, "WORKFLOW_DEF", "bank_*", "READ")
    assert api_client_of(shop).get("/metadata/tags").json() == [TAG]
    assert bank.get("/metadata/tags").json() == [TAG, secret]


def test_the_tags_of_a_webhook_are_listed_by_a_grant_on_its_name(bank, shop):
    made = bank.post("/metadata/webhook", {"name": "hook", "verifier": "HEADER_BASED", "headers": {"k": "v"},
                                           "receiverWorkflowNamesToVersions": {"bank_order": 1}})  # fmt: skip
    assert made.status_code == 200, made.content
    bank.put(f"/metadata/webhook/{made.json()['id']}/tags", [TAG])
    bank.delete("/metadata/workflow/bank_order/1")

    assert api_client_of(shop).get("/metadata/tags").json() == []
    grant_access(shop, "WEBHOOK", "hook", "READ")
    assert api_client_of(shop).get("/metadata/tags").json() == [TAG]


@pytest.mark.parametrize("path", ["/workflow/{}", "/insight/runs/{}/cause", "/tasks/{}", "/tasks/{}/log"])
def test_the_refusal_of_an_id_does_not_name_what_it_belongs_to(bank, shop, path):
    run = start(bank)
    id = bank.workflow(run)["tasks"][0]["taskId"] if "tasks" in path else run

    refused = api_client_of(shop).get(path.format(id))

    assert refused.status_code == 403
    assert "lacks the permission on this run: READ on its" in refused.json()["message"]
    assert "bank_order" not in refused.content.decode() and "pay" not in refused.content.decode()


def test_a_reader_of_a_run_is_told_which_permission_is_missing(bank, shop):
    run = start(bank)
    grant_access(shop, "WORKFLOW_DEF", "bank_order", "READ")

    refused = api_client_of(shop).put(f"/workflow/{run}/pause")

    assert refused.status_code == 403
    assert "'bank_order'" in refused.json()["message"]


@pytest.mark.parametrize("of", ["id", "beginning", "correlation id"])
def test_a_comparison_does_not_find_runs_that_the_caller_may_not_read(bank, shop, of):
    run = start(bank, correlationId="bank-77")
    bank.post("/metadata/workflow", workflow_document("shop_order", simple("sell")))
    own = start(bank, "shop_order")
    grant_access(shop, "WORKFLOW_DEF", "shop_*", "READ")
    named = {"id": run, "beginning": run[:-2], "correlation id": "bank-77"}[of]

    found = bank.get(f"/insight/runs/{own}/compare?with={named}")
    refused = api_client_of(shop).get(f"/insight/runs/{own}/compare?with={named}")
    unknown = api_client_of(shop).get(f"/insight/runs/{own}/compare?with=no-{named}")

    assert (found.status_code, refused.status_code, unknown.status_code) == (200, 404, 404)
    assert refused.json()["message"] == unknown.json()["message"].replace("no-", "")


def test_a_process_simulates_a_few_tests_of_workflows_at_the_same_time(bank):
    slots = simulation._simulations.value
    for _ in range(simulation.MAX_PARALLEL_TESTS):
        slots.acquire()
    request = {"name": "bank_order", "taskRefToMockOutput": {}}

    refused = bank.post("/workflow/test", request)
    slots.release()

    assert (refused.status_code, refused.json()["retryable"]) == (429, True)
    assert int(refused["Retry-After"]) > 0
    assert "tests of workflows run in this process already" in refused.json()["message"]
    assert [bank.post("/workflow/test", request).status_code for _ in range(2)] == [200, 200]
