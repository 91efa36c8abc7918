"""Workflows that belong together, and every form of starting one (api §1.2, §2.1)."""

import pytest

from tests.builders import simple


@pytest.fixture
def started(api):
    """Start workflows of two names and two correlation ids, one of which has ended."""
    for name in ("order", "refund"):
        api.define(simple("pay"), name=name)
    ids = {(name, id): api.start(name, correlationId=id) for name in ("order", "refund") for id in ("A", "B")}
    api.start("order")
    api.delete(f"/workflow/{ids['order', 'B']}")
    return ids


def ids_by_correlation(reply):
    return {id: [run["workflowId"] for run in runs] for id, runs in reply.json().items()}


def test_several_names_are_looked_up_in_one_request(api, started):
    asked = {"correlationIds": ["A", "B", "C"], "workflowNames": ["order", "refund", "nobody"]}

    running = api.post("/workflow/correlated/batch", asked)
    every = api.post("/workflow/correlated/batch?includeClosed=true&includeTasks=true", asked)

    assert ids_by_correlation(running) == {
        "A": [started["order", "A"], started["refund", "A"]], "B": [started["refund", "B"]], "C": [],
    }  # fmt: skip
    assert ids_by_correlation(every)["B"] == [started["order", "B"], started["refund", "B"]]
    assert [len(run["tasks"]) for run in every.json()["A"]] == [1, 1]


@pytest.mark.parametrize("query", ["?correlationIds=A,B", "?correlationIds=A&correlationIds=B"])
def test_one_client_sends_a_get_request(api, started, query):
    assert ids_by_correlation(api.get(f"/workflow/order/correlated{query}")) == {"A": [started["order", "A"]], "B": []}


def test_a_get_may_bring_the_ids_as_a_body(api, started):
    reply = api.send("GET", "/workflow/order/correlated?includeClosed=true", ["B"])

    assert ids_by_correlation(reply) == {"B": [started["order", "B"]]}


def test_an_empty_id_finds_nothing(api, started):
    assert api.post("/workflow/order/correlated", ["", "A"]).json()[""] == []


@pytest.mark.parametrize("body", [[], {"correlationIds": "A"}, {"workflowNames": [1, {}]}, None])
def test_a_batch_that_makes_no_sense_is_refused(api, body):
    assert api.post("/workflow/correlated/batch", body).status_code == 400


def test_an_empty_batch_finds_nothing(api, started):
    assert api.post("/workflow/correlated/batch", {}).json() == {}


def test_thousands_of_ids_are_looked_up_in_a_few_queries(api, started, django_assert_max_num_queries):
    ids = ["A", *map(str, range(1200))]

    with django_assert_max_num_queries(5):
        reply = api.post("/workflow/order/correlated", ids)

    assert len(reply.json()) == 1201
    assert ids_by_correlation(reply)["A"] == [started["order", "A"]]


def test_a_version_is_started_by_its_address(api):
    api.define(simple("pay"), version=1)
    api.define(simple("ship"), version=2)
    request = {"correlationId": "A", "priority": 7, "taskToDomain": {"pay": "eu"}, "input": {"n": 1}}

    first = api.workflow(api.post("/workflow/start/order/1", request).content.decode())
    newest = api.workflow(api.post("/workflow/start/order/0").content.decode())

    assert (first["workflowVersion"], newest["workflowVersion"]) == (1, 2)
    assert (first["correlationId"], first["priority"], first["tasks"][0]["domain"], first["input"]) == (
        "A", 7, "eu", {"n": 1},
    )  # fmt: skip
    assert api.post("/workflow/start/order/9", {}).status_code == 404
    assert api.post("/workflow/start/order/x", {}).status_code == 400


FORMS = {
    "by a request": lambda api, key, strategy: api.post(
        "/workflow", {"name": "order", "idempotencyKey": key, "idempotencyStrategy": strategy}
    ),
    "by name and version": lambda api, key, strategy: api.post(
        "/workflow/start/order/1", {"idempotencyKey": key, "idempotencyStrategy": strategy}
    ),
    "by name": lambda api, key, strategy: api.post(
        "/workflow/order", {}, **{"X-Idempotency-key": key, "X-on-conflict": strategy}
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_way_to_start_accepts_the_key(api, form):
    api.define(simple("pay"))
    start = FORMS[form]
    first = start(api, "k", "FAIL").content

    assert start(api, "k", "RETURN_EXISTING").content == first
    assert start(api, "k", "FAIL").status_code == 409
    assert start(api, "k", "FAIL_ON_RUNNING").status_code == 409
    api.report(api.poll("pay")[0])
    assert start(api, "k", "FAIL").status_code == 409
    again = start(api, "k", "FAIL_ON_RUNNING")
    assert (again.status_code, again.content != first) == (200, True)
    assert start(api, "other", "FAIL").status_code == 200


def test_an_unknown_strategy_is_rejected(api):
    api.define(simple("pay"))

    assert api.post("/workflow/order", {}, **{"X-on-conflict": "PERHAPS"}).status_code == 400
    assert api.post("/workflow/order", {}, **{"X-Idempotency-key": "k" * 300}).status_code == 400
