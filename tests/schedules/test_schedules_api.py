"""The scheduler's addresses, as clients call them."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.processes import sweeps
from tests.builders import simple
from tests.conftest import NOON

HOUR_MS = 3_600_000
START = {"name": "order", "input": {"a": 1}}


def document(name: str = "hourly", **fields) -> dict:
    return {"name": name, "cronExpression": "0 0 * * * *", "startWorkflowRequest": START, **fields}


@pytest.fixture
def stored_schedule(api, clock):
    """Create one schedule."""
    reply = api.post("/scheduler/schedules", document())
    assert reply.status_code == 200, reply.content
    return reply.json()


def test_a_schedule_is_returned_as_sent_with_the_fields_of_the_server(api, stored_schedule):
    assert stored_schedule == {
        "name": "hourly",
        "cronExpression": "0 0 * * * *",
        "zoneId": "UTC",
        "cronSchedules": [],
        "runCatchupScheduleInstances": False,
        "overlapPolicy": "ALLOW",
        "paused": False,
        "startWorkflowRequest": {
            "name": "order",
            "input": {"a": 1},
            "correlationId": "",
            "taskToDomain": {},
            "priority": 0,
            "idempotencyStrategy": "FAIL",
        },
        "tags": [],
        "createTime": NOON,
        "updatedTime": NOON,
        "createdBy": "anonymous",
        "updatedBy": "anonymous",
        "nextRunTime": NOON + HOUR_MS,
    }
    assert api.get("/scheduler/schedules/hourly").json() == stored_schedule


def test_unknown_fields_are_preserved(api, clock):
    start = {**START, "colour": "red"}
    api.post("/scheduler/schedules", document(orgId="x", startWorkflowRequest=start))

    kept = api.get("/scheduler/schedules/hourly").json()

    assert kept["orgId"] == "x"
    assert kept["startWorkflowRequest"]["colour"] == "red"


def test_saving_again_preserves_creation_time_and_author(api, stored_schedule, clock):
    clock.advance(seconds=60)

    again = api.post("/scheduler/schedules", document(description="new", createdBy="somebody", updatedBy="me")).json()

    assert (again["createTime"], again["createdBy"]) == (NOON, "anonymous")
    assert (again["updatedTime"], again["updatedBy"], again["description"]) == (NOON + 60_000, "me", "new")


REFUSED = {
    "no name": {"name": ""},
    "no request": {"startWorkflowRequest": None},
    "a request without a name": {"startWorkflowRequest": {}},
    "a request with a bad priority": {"startWorkflowRequest": {"name": "a", "priority": 100}},
    "a request that is none": {"startWorkflowRequest": 7},
    "no expression": {"cronExpression": None},
    "five fields": {"cronExpression": "* * * * *"},
    "a bad entry among several": {"cronSchedules": [{"cronExpression": "0 0 * * * *"}, {"cronExpression": "x"}]},
    "an entry that is none": {"cronSchedules": [7]},
    "null for an entry": {"cronSchedules": [None]},
    "too many entries": {"cronSchedules": [{"cronExpression": "0 0 * * * *"}] * 101},
    "an unknown zone": {"zoneId": "Europe/Atlantis"},
    "an unknown policy": {"overlapPolicy": "MAYBE"},
    "an end before the start": {"scheduleStartTime": 2, "scheduleEndTime": 1},
    "a negative window": {"catchupWindowSeconds": -1},
    "tags that are none": {"tags": "x"},
    "a moment that is none": {"scheduleStartTime": "soon"},
    "a long name": {"name": "x" * 300},
}


@pytest.mark.parametrize("fields", REFUSED.values(), ids=REFUSED)
def test_an_invalid_schedule_is_rejected_and_not_saved(api, clock, fields):
    reply = api.post("/scheduler/schedules", document(**fields))

    assert reply.status_code == 400, reply.content
    assert api.get("/scheduler/schedules").json() == []


def test_an_invalid_expression_is_rejected_with_the_text_that_clients_expect(api, clock):
    reply = api.post("/scheduler/schedules", document(cronExpression="0 0 0 * * SAT-MON"))

    assert "cron" in reply.json()["message"]


@pytest.mark.parametrize("moment", [-(2**63), 2**63 - 1, "9223372036854775807"])
def test_extreme_times_are_accepted(api, clock, moment):
    for field in ("scheduleStartTime", "scheduleEndTime"):
        assert api.post("/scheduler/schedules", document(**{field: moment})).status_code in (200, 400)


def test_an_unknown_schedule_is_not_found(api, clock):
    assert api.get("/scheduler/schedules/nothing").status_code == 404
    assert api.delete("/scheduler/schedules/nothing").status_code == 200
    for verb in ("pause", "resume"):
        assert api.put(f"/scheduler/schedules/nothing/{verb}").status_code == 404
        assert api.get(f"/scheduler/schedules/nothing/{verb}").status_code == 404


@pytest.mark.parametrize("method", ["get", "put"])
def test_it_is_paused_and_resumed_with_the_method_of_each_client(api, stored_schedule, method):
    ask = getattr(api, method)

    assert ask("/scheduler/schedules/hourly/pause").content == b""
    paused = api.get("/scheduler/schedules/hourly").json()
    assert paused["paused"] and "nextRunTime" not in paused
    assert ask("/scheduler/schedules/hourly/resume").status_code == 200
    assert ask("/scheduler/schedules/hourly/resume").status_code == 404

    assert not api.get("/scheduler/schedules/hourly").json()["paused"]


def test_a_pause_has_a_reason_until_it_ends(api, stored_schedule):
    api.put("/scheduler/schedules/hourly/pause?reason=inventory")
    assert api.get("/scheduler/schedules/hourly").json()["pausedReason"] == "inventory"

    api.put("/scheduler/schedules/hourly/resume")

    assert "pausedReason" not in api.get("/scheduler/schedules/hourly").json()
    assert [(entry.action, entry.reason) for entry in AuditEntry.objects.order_by("id")][1:] == [
        ("pause", "inventory"),
        ("resume", ""),
    ]


def test_several_are_paused_and_resumed_at_once(api, stored_schedule):
    api.post("/scheduler/schedules", document("two"))

    reply = api.put("/scheduler/bulk/pause", ["hourly", "two", "three"]).json()
    assert reply["bulkSuccessfulResults"] == ["hourly", "two"]
    assert reply["bulkErrorResults"].keys() == {"three"}

    assert api.put("/scheduler/bulk/resume", ["two"]).json()["bulkSuccessfulResults"] == ["two"]
    assert api.put("/scheduler/bulk/resume", {"a": 1}).status_code == 400


def test_schedules_are_listed_by_workflow_and_searched(api, stored_schedule):
    api.post("/scheduler/schedules", document("daily", startWorkflowRequest={"name": "report"}, paused=True))

    def names(path: str, **query) -> list[str]:
        found = api.get(path, **query).json()
        return [each["name"] for each in (found if isinstance(found, list) else found["results"])]

    assert names("/scheduler/schedules") == ["daily", "hourly"]
    assert names("/scheduler/schedules", workflowName="report") == ["daily"]
    search = "/scheduler/schedules/search"
    assert names(search, workflowName="order") == ["hourly"]
    assert names(search, scheduleName="OUR") == ["hourly"]
    assert names(search, paused="true") == ["daily"]
    assert names(search, paused="false", freeText="*", sort="") == ["hourly"]
    assert names(search, size=1, start=1) == ["hourly"]
    assert names(search, sort="name:DESC,colour:ASC") == ["hourly", "daily"]
    assert api.get(search, size=1).json()["totalHits"] == 2


def test_tags_are_replaced_and_removed(api, stored_schedule):
    tags = [{"key": "team", "value": "a"}, {"key": "team", "value": "b", "type": "METADATA"}]
    assert api.put("/scheduler/schedules/hourly/tags", tags).status_code == 200
    assert [tag["value"] for tag in api.get("/scheduler/schedules/hourly/tags").json()] == ["a", "b"]
    assert [each["name"] for each in api.get("/scheduler/schedules/tags", tag="team:b").json()] == ["hourly"]
    assert api.get("/scheduler/schedules/tags", tag="team:c").json() == []

    api.delete("/scheduler/schedules/hourly/tags", tags[:1])

    assert [tag["value"] for tag in api.get("/scheduler/schedules/hourly").json()["tags"]] == ["b"]
    assert api.put("/scheduler/schedules/hourly/tags", [{"value": "x"}]).status_code == 400
    assert api.put("/scheduler/schedules/nothing/tags", tags).status_code == 404


def test_the_next_times_of_an_expression_are_returned(api, clock):
    def next_few(**query):
        return api.get("/scheduler/nextFewSchedules", **query)

    assert next_few(cronExpression="@hourly").json() == [NOON + hour * HOUR_MS for hour in range(1, 6)]
    assert len(next_few(cronExpression="@hourly", limit=50).json()) == 5
    window = {"scheduleStartTime": NOON + 2 * HOUR_MS, "scheduleEndTime": NOON + 3 * HOUR_MS}
    assert next_few(cronExpression="@hourly", **window).json() == [NOON + 2 * HOUR_MS, NOON + 3 * HOUR_MS]
    assert next_few(cronExpression="0 0 14 * * *", zoneId="Europe/Berlin", limit=1).json() == [NOON + HOUR_MS]
    assert next_few(cronExpression="* * * * *").status_code == 400
    assert next_few().status_code == 400
    assert next_few(cronExpression="0 0 0 31 2 *").json() == []


def test_runs_of_a_schedule_bear_the_labels_of_its_request(api, clock):
    api.define(simple("pay"))
    api.post("/scheduler/schedules", document(startWorkflowRequest={**START, "labels": ["nightly"]}))

    run = api.post("/scheduler/schedules/hourly/run").content.decode()

    assert api.get(f"/workflow/{run}/labels").json() == ["nightly"]


def test_a_schedule_is_run_now_and_backfilled(api, stored_schedule, clock):
    api.define(simple("pay"))
    run = api.workflow(api.post("/scheduler/schedules/hourly/run").content.decode())
    assert run["input"]["_startedByScheduler"] == "hourly"

    clock.advance(seconds=2 * 3600)
    api.put("/scheduler/schedules/hourly/pause")
    api.put("/scheduler/schedules/hourly/resume")
    assert api.post(f"/scheduler/schedules/hourly/backfill?startTime={NOON + 1}").json() == {"slots": 2}

    assert api.post("/scheduler/schedules/hourly/backfill").status_code == 400
    assert api.post("/scheduler/schedules/hourly/backfill?startTime=5&endTime=x").status_code == 400
    assert api.post("/scheduler/schedules/nothing/backfill?startTime=5").status_code == 404
    assert api.post("/scheduler/schedules/nothing/run").status_code == 404


@pytest.mark.parametrize("method", ["get", "post"])
def test_all_schedules_are_paused_and_resumed(api, stored_schedule, clock, method):
    ask = getattr(api, method)
    api.define(simple("pay"))
    clock.advance(seconds=3600)

    assert ask("/scheduler/admin/pause").json() == {"status": "done"}
    assert sweeps.fire_schedules(10) == 0
    assert ask("/scheduler/admin/resume").json() == {"status": "done"}

    assert sweeps.fire_schedules(10) == 1
    assert api.get("/scheduler/admin/requeue").json() == {"recordIds.size": 0, "sampleIds": []}


@pytest.fixture
def history(api, clock):
    """Return two hours of two schedules; the workflow of the second does not exist."""
    api.define(simple("pay"))
    api.post("/scheduler/schedules", document())
    api.post("/scheduler/schedules", document("broken", startWorkflowRequest={"name": "missing"}))
    for _ in range(2):
        clock.advance(seconds=3600)
        sweeps.fire_schedules(10)
    return api


def search(api, **query) -> list[tuple[str, int, str]]:
    found = api.get("/scheduler/search/executions", **query).json()
    return [
        (each["scheduleName"], (each["scheduledTime"] - NOON) // HOUR_MS, each["state"]) for each in found["results"]
    ]


ALL = {("hourly", 1, "EXECUTED"), ("hourly", 2, "EXECUTED"), ("broken", 1, "FAILED"), ("broken", 2, "FAILED")}
QUERIES = {
    "": ALL,
    "scheduleName IN (hourly)": {each for each in ALL if each[0] == "hourly"},
    "scheduleName IN (hourly,broken)": ALL,
    "scheduleName='broken'": {each for each in ALL if each[0] == "broken"},
    "state IN (POLLED,FAILED)": {each for each in ALL if each[2] == "FAILED"},
    f"scheduledTime>{NOON + HOUR_MS}": {each for each in ALL if each[1] == 2},
    f"scheduledTime<{NOON + 2 * HOUR_MS} AND state=EXECUTED": {("hourly", 1, "EXECUTED")},
    "workflowName=miss": {each for each in ALL if each[0] == "broken"},
    "hourly": {each for each in ALL if each[0] == "hourly"},
    "executionId=none": set(),
    "colour=red": set(),
}


@pytest.mark.parametrize(("query", "expected"), QUERIES.items(), ids=[query or "all" for query in QUERIES])
def test_executions_of_schedules_are_searchable(history, query, expected):
    assert set(search(history, query=query)) == expected


def test_executions_of_schedules_are_paged(history):
    assert [each[1] for each in search(history)] == [2, 2, 1, 1]
    assert search(history, sort="scheduledTime:ASC,scheduleName:DESC", size=2) == [
        ("hourly", 1, "EXECUTED"),
        ("broken", 1, "FAILED"),
    ]
    assert len(search(history, start=3)) == 1
    assert history.get("/scheduler/search/executions", size=1).json()["totalHits"] == 4


def test_an_execution_names_its_run_or_the_reason_for_none(history):
    [failed] = history.get("/scheduler/search/executions", query="broken", size=1).json()["results"]
    [started] = history.get("/scheduler/search/executions", query="hourly", size=1).json()["results"]

    assert failed["reason"] == "No such workflow found by name: missing"
    assert "workflowId" not in failed
    assert history.workflow(started["workflowId"])["input"] == started["startWorkflowRequest"]["input"]
    assert (started["executionTime"], started["zoneId"], started["workflowName"]) == (
        NOON + 2 * HOUR_MS,
        "UTC",
        "order",
    )


@pytest.mark.parametrize(
    "query",
    ["scheduledTime>soon", "scheduledTime IN (1)", f"scheduledTime>{2**80}", " AND ".join(["a=1"] * 60)],
    ids=["no number", "no list", "a large number", "many clauses"],
)
def test_a_query_that_cannot_be_read_is_refused(api, clock, query):
    assert api.get("/scheduler/search/executions", query=query).status_code == 400


@pytest.mark.parametrize("query", ["\0", "state=\0", "((((", "scheduleName IN ()", "=", "x" * 10_000])
def test_an_unusual_query_finds_nothing(api, clock, query):
    assert api.get("/scheduler/search/executions", query=query).json()["results"] == []
