"""Searches for workflows and tasks (api §6): results, order and format."""

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.runs.search import RUNS, TASKS
from conductor_app.runs.search import compiler as query_compiler
from conductor_app.runs.search import results as result_pages
from tests.builders import simple
from tests.hypothesis_profile import property_settings
from tests.runs.test_statements import Counted

DAY = 86_400


def ids(reply) -> list[str]:
    assert reply.status_code == 200, reply.content
    return [found.get("workflowId") for found in reply.json()["results"]]


@pytest.fixture(scope="module")
def shop_at_noon(stock):
    """Create four workflows by name: one waits, one is paused, one failed and one completed; the newest is last."""
    api, clock = stock
    noon = clock.now()
    api.post("/metadata/taskdefs", [{"name": "pay", "retryCount": 0}])
    api.define(simple("pay"))
    api.define(simple("pay"), simple("ship"), name="refund", version=2)
    waits = api.start(correlationId="cu-1", priority=5, input={"customer": {"id": 42, "name": "Ann"}, "total": 9.5})
    clock.advance(seconds=60)
    paused = api.start(idempotencyKey="k-1", input={"customer": {"id": "42"}, "tags": ["a", "b"]})
    api.put(f"/workflow/{paused}/pause")
    clock.advance(seconds=60)
    failed = api.start("refund", correlationId="cu-2", input={"customer": {"id": 7}, "urgent": True})
    done = api.start(correlationId="cu 3 and more", input={"total": 100})
    tasks = {task["workflowInstanceId"]: task for task in api.poll("pay", count=4)}
    api.report(tasks[failed], "FAILED", reasonForIncompletion="No funds left")
    clock.advance(seconds=1)
    api.report(tasks[done], outputData={"receipt": "r-1"}, workerId="w-9")
    return {"waits": waits, "paused": paused, "failed": failed, "done": done}, noon


@pytest.fixture
def shop(shop_at_noon):
    """Return the four workflows."""
    return shop_at_noon[0]


QUERIES = {
    # Queries that the original supports (§6.1), as its clients send them (§6.5).
    "workflowType IN (order,other) AND status IN (FAILED,RUNNING)": "waits",
    "workflowType = 'order' AND status = 'COMPLETED'": "done",
    "workflowType='refund'": "failed",
    "workflowId='{paused}'": "paused",
    "correlationId IN (cu-1,cu-2)": "failed waits",
    "correlationId = cu 3 and more": "done",
    "idempotencyKey IN (k-1)": "paused",
    'parentWorkflowId=""': "failed done paused waits",
    "startTime>{noon}": "failed done paused",
    "startTime<{a_minute_later}": "waits",
    "status = RUNNING AND startTime>1 AND startTime<99999999999999": "waits",
    "correlationId = 'cu-*'": "failed waits",
    "correlationId = 'CU-*'": "failed waits",
    "classifier = workflow": "failed done paused waits",
    "classifier = agent": "",
    # Queries that other backends support (§6.3), and extensions.
    "status = FAILED OR status = PAUSED": "failed paused",
    "(status = FAILED OR status = PAUSED) AND workflowType = order": "paused",
    "status != RUNNING AND NOT status = PAUSED": "failed done",
    "status NOT IN (FAILED, PAUSED)": "done waits",
    "NOT (status = FAILED OR workflowType = order)": "",
    "startTime >= {noon} AND startTime <= {noon}": "waits",
    "startTime BETWEEN {noon} AND {a_minute_later}": "paused waits",
    "startTime >= '2027-03-01T12:01:00Z'": "failed done paused",
    "workflowType STARTS_WITH 'ref'": "failed",
    "workflowType = '*FUND'": "failed",
    "workflowId STARTS_WITH '{waits}'": "waits",
    "correlationId IS NULL": "paused",
    "correlationId IS NOT NULL": "failed done waits",
    "endTime IS NULL": "paused waits",
    "endTime > 0": "failed done",
    "idempotencyKey IS NULL": "failed done waits",
    "idempotencyKey != 'k-1'": "failed done waits",
    "updateTime > {two_minutes_later}": "done",
    "modifiedTime < {two_minutes_later}": "paused waits",
    "version = 2": "failed",
    "version != 2 AND priority > 0": "waits",
    "priority=5": "waits",
    "workflowName = order and status = completed": "done",
    "createdBy = anonymous AND status=PAUSED": "paused",
    "failedReferenceTaskNames = pay": "failed",
    "failedReferenceTaskNames = 'p*'": "failed",
    "failedReferenceTaskNames IS NOT NULL": "failed",
    "reasonForIncompletion = '*FUNDS*'": "failed",
    "event = x": "",
    "event IS NULL AND status = PAUSED": "paused",
    "rateLimitKey = x": "",
    "status = NONSENSE*": "",
    "status IN (SCHEDULED, PAUSED)": "paused",
    # Inside documents.
    "input.customer.id = 42": "paused waits",
    "input.customer.id > 7": "waits",
    "input.customer.id >= 7": "failed waits",
    "input.customer.name = 'ann' OR input.customer.name = Ann": "waits",
    "input.customer.name = 'A*'": "waits",
    "input.customer.name STARTS_WITH A": "waits",
    "input.total > 9": "done waits",
    "input.total = 9.5": "waits",
    "input.total BETWEEN 1 AND 10": "waits",
    "input.total IN (100, 9.5)": "done waits",
    "input.tags[1] = b": "paused",
    "input['customer'].id = 7": "failed",
    "input.urgent = true": "failed",
    "input.urgent IS NULL": "done paused waits",
    "input.customer.id != 42 AND input.customer IS NOT NULL": "failed",
    "output.nothing = 1": "",
    "variables.x = 1": "",
    "input = '*Ann*'": "waits",
    "": "failed done paused waits",
}


@pytest.fixture
def words(shop_at_noon):
    """Return the values of placeholders that queries use for ids and times."""
    shop, noon = shop_at_noon
    return {**shop, "noon": noon, "a_minute_later": noon + 60_000, "two_minutes_later": noon + 120_000}


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_a_query_finds(reader, shop, words, query):
    found = ids(reader.get("/workflow/search", query=query.format(**words)))

    names = {id: name for name, id in shop.items()}
    assert {names[id] for id in found} == set(QUERIES[query].split())
    assert [reader.workflow(id)["startTime"] for id in found] == sorted(
        (reader.workflow(id)["startTime"] for id in found), reverse=True
    )


def test_a_query_can_combine_all_fields(reader, shop, words):
    """Combine each query of the table by AND with a condition that all rows match: the results are the same."""
    for query, expected in QUERIES.items():
        for also in (f"startTime > {words['noon'] - 1}", "status != NONSENSE*", "workflowType IN (order, refund)"):
            asked = f"({query.format(**words)}) AND {also}" if query else also
            assert len(ids(reader.get("/workflow/search", query=asked))) == len(expected.split()), asked


REFUSED = {
    "status": (7, "the end"),
    "status = ": (10, "the end"),
    "status = FAILED AND": (20, "the end"),
    "nonsense = 1": (1, "nonsense"),
    "status.x = 1": (1, "status.x"),
    "(status = FAILED": (17, "the end"),
    "status = FAILED)": (16, ")"),
    "status = 'FAILED": (10, "'FAILED"),
    "version = two": (11, "two"),
    "status = NONSENSE": (10, "use one of: COMPLETED, FAILED, PAUSED"),
    "workflowType = order AND status != nonsense": (36, "NONSENSE"),
    "status IN (SCHEDULED, IN_PROGRESS)": (12, "SCHEDULED, IN_PROGRESS"),
    "startTime > yesterday": (13, "yesterday"),
    "startTime STARTS_WITH 2027": (1, "startTime"),
    "version STARTS_WITH 1": (1, "version"),
    "status ~ x": (8, "~ x"),
    "startTime BETWEEN 1": (20, "the end"),
    "failedReferenceTaskNames > x": (1, "failedReferenceTaskNames"),
    "correlationId = '*a*b*c*d*e*f*'": (17, "'*a*b"),
}


@pytest.mark.parametrize("query", REFUSED, ids=str)
def test_a_query_that_cannot_be_understood_is_refused_and_the_place_named(api, query):
    place, shown = REFUSED[query]

    reply = api.get("/workflow/search", query=query)

    assert reply.status_code == 400
    assert f"at character {place}," in reply.json()["message"]
    assert shown in reply.json()["message"]


FREE_TEXTS = {
    "workflowType:refund": "failed",
    'correlationId:"cu-1" AND status:"RUNNING"': "waits",
    'input:"Ann" OR correlationId:cu-2': "failed waits",
    "reasonForIncompletion:funds": "failed",
    "r-1 AND status:COMPLETED": "done",
    "input.customer.id:7": "failed",
    "": "failed done paused waits",
    "*": "failed done paused waits",
    "ann": "waits",
    "funds no": "failed",
    '"no funds"': "failed",
    '"funds no"': "",
    "refund": "failed",
    "cu-1": "waits",
    "r-1": "done",
    "r-2": "",
    "50%": "",
}


@pytest.mark.parametrize("text", FREE_TEXTS, ids=str)
def test_free_text_is_found_anywhere(reader, shop, text):
    found = ids(reader.get("/workflow/search", freeText=text))

    assert set(found) == {shop[name] for name in FREE_TEXTS[text].split()}


@pytest.mark.parametrize("address", ["/workflow/search", "/workflow/search-v2", "/tasks/search", "/tasks/search-v2"])
@pytest.mark.parametrize("text", ["OR", "AND OR", '"" OR ""'])
def test_free_text_of_operators_is_refused_and_explained(reader, address, text):
    reply = reader.get(address, freeText=text)

    assert reply.status_code == 400
    assert "Write the words to search for" in reply.json()["message"]


def test_a_summary_has_the_fields_and_forms_that_clients_read(reader, shop):
    [found] = reader.get("/workflow/search", query="status = FAILED").json()["results"]

    assert found == {
        "workflowType": "refund",
        "version": 2,
        "workflowId": shop["failed"],
        "correlationId": "cu-2",
        "startTime": "2027-03-01T12:02:00.000Z",
        "updateTime": "2027-03-01T12:02:00.000Z",
        "endTime": "2027-03-01T12:02:00.000Z",
        "status": "FAILED",
        "input": "{customer={id=7}, urgent=true}",
        "output": found["output"],
        "reasonForIncompletion": found["reasonForIncompletion"],
        "executionTime": 0,
        "failedReferenceTaskNames": "pay",
        "failedTaskNames": ["pay"],
        "priority": 0,
        "createdBy": "anonymous",
        "taskToDomain": {},
        "parentWorkflowId": "",
        "classifier": "workflow",
        "inputSize": len('{"customer":{"id":7},"urgent":true}'),
        "outputSize": found["outputSize"],
    }
    assert "No funds left" in found["reasonForIncompletion"]


def test_a_result_contains_totals_and_results_only(reader, shop):
    assert reader.get("/workflow/search").json().keys() == {"totalHits", "results"}
    assert reader.get("/workflow/search", start=0, size=2).json()["totalHits"] == 4


def test_pages_follow_one_another(reader, shop):
    pages = [ids(reader.get("/workflow/search", start=start, size=2)) for start in (0, 2, 4)]

    assert sorted(pages[0] + pages[1]) == sorted(shop.values())
    assert pages[2] == []
    assert reader.get("/workflow/search", start=4, size=2).json()["totalHits"] == 4
    assert reader.get("/workflow/search", size=0).json() == {"totalHits": 4, "results": []}


def test_hits_are_sorted_as_requested(reader, shop):
    def order(sort, **more):
        names = {id: name for name, id in shop.items()}
        return [names[id] for id in ids(reader.get("/workflow/search", sort=sort, **more))]

    assert order("startTime:ASC")[:2] == ["waits", "paused"]
    assert order("workflowType:DESC|startTime:ASC") == ["failed", "waits", "paused", "done"]
    assert order("status:ASC") == ["done", "failed", "paused", "waits"]
    assert order("endTime:DESC")[:2] == ["done", "failed"]
    assert set(order("endTime:ASC")[:2]) == {"paused", "waits"}
    assert order("priority:DESC,startTime:DESC")[0] == "waits"
    assert order(["workflowType:DESC", "startTime:ASC"]) == ["failed", "waits", "paused", "done"]
    assert order("updateTime:DESC", query="workflowType = order")[0] == "done"
    assert len(order("")) == 4


def test_a_sort_by_an_unknown_field_is_refused(api):
    reply = api.get("/workflow/search", sort="startTime:ASC|nonsense:DESC")

    assert reply.status_code == 400
    assert "Workflows cannot be sorted by 'nonsense'. Use one of: correlationId, " in reply.json()["message"]


@pytest.mark.parametrize("name", ["start", "size"])
def test_a_negative_page_is_refused(api, name):
    reply = api.get("/workflow/search", **{name: -1})

    assert (reply.status_code, reply.json()["validationErrors"][0]["path"]) == (400, f"searchWorkflows.{name}")


def test_more_than_five_thousand_are_refused_as_the_original_does(api):
    reply = api.get("/workflow/search", size=5001)

    assert reply.status_code == 400
    assert reply.json()["message"] == "Validation failed, check below errors for detail."


def test_a_search_returns_workflows_without_tasks(reader, shop):
    [found] = reader.get("/workflow/search-v2", query="status = FAILED").json()["results"]

    assert found == {**reader.workflow(shop["failed"]), "tasks": []}


def test_only_the_top_level_is_returned_on_request(api, clock):
    api.define(simple("pay"), name="child")
    api.define({"name": "c", "taskReferenceName": "c", "type": "SUB_WORKFLOW", "subWorkflowParam": {"name": "child"}})
    parent = api.start()
    [child] = set(ids(api.get("/workflow/search"))) - {parent}

    assert ids(api.get("/workflow/search", topLevelOnly="true")) == [parent]
    assert ids(api.get("/workflow/search", query=f"parentWorkflowId = {parent}")) == [child]
    assert ids(api.get("/workflow/search", query="parentWorkflowId IS NOT NULL")) == [child]
    assert ids(api.get("/workflow/search", classifier="agent")) == []
    assert len(ids(api.get("/workflow/search", classifier="workflow,agent"))) == 2


FIELDS = st.sampled_from([*RUNS.fields, *TASKS.fields, "input.a", "output['b c'].d[0]", "variables.x[99]", "nonsense"])
VALUE = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.integers(-(2**80), 2**80).map(str),
    st.sampled_from(["''", '""', "*", "a*b", "'%_\\'", "'\\u0000'", "RUNNING", "1e9", "-0", "٣", "2027-03-01", "null"]),
)
COMPARISON = st.one_of(
    st.tuples(st.sampled_from(["=", "!=", "<>", ">", "<", ">=", "<=", "STARTS_WITH"]), VALUE).map(" ".join),
    st.tuples(st.sampled_from(["IN", "NOT IN"]), st.lists(VALUE, max_size=4).map(",".join)).map(
        lambda pair: f"{pair[0]} ({pair[1]})"
    ),
    st.tuples(VALUE, VALUE).map(lambda pair: f"BETWEEN {pair[0]} AND {pair[1]}"),
    st.sampled_from(["IS NULL", "IS NOT NULL", "", "IS", "IN (", "BETWEEN 1"]),
)
CLAUSES = st.tuples(FIELDS, COMPARISON).map(" ".join)
QUERY = st.recursive(
    CLAUSES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" AND ", " OR ", " and ", " "]), inner).map("".join),
        inner.map(lambda query: f"({query})"),
        inner.map(lambda query: f"NOT {query}"),
    ),
    max_leaves=6,
)


def test_a_prefix_inside_a_document_can_look_like_a_number(api):
    reply = api.get("/workflow/search", query="input.order STARTS_WITH 10")

    assert reply.status_code == 200


@pytest.mark.slow
@property_settings(60)
@given(query=QUERY, free_text=VALUE, sort=st.sampled_from(["", "endTime:DESC", "priority|status:DESC", "workflowId:X"]))
def test_no_query_whatsoever_is_a_fault_of_ours(api, query, free_text, sort):
    for address in ("/workflow/search", "/tasks/search", "/workflow/search-by-tasks-v2"):
        for words in ("*", free_text):
            reply = api.get(address, query=query, freeText=words, sort=sort, size=3)

            assert reply.status_code in (200, 400), (query, reply.content)


HUGE = {
    "brackets": "(" * 50_000,
    "nots": "NOT " * 20_000 + "status = x",
    "clauses": " OR ".join(["status = RUNNING"] * 5_000),
    "values": f"correlationId IN ({','.join(['x'] * 30_000)})",
    "blanks": "status = " + " " * 90_000 + "x",
    "words": "correlationId = " + "and or " * 12_000,
    "a long value": "correlationId = " + "x" * 90_000,
    "a long pattern": "correlationId = *" + "x" * 90_000,
    "a long path": "input" + ".a" * 40_000 + " = 1",
    "too long": "x" * 200_000,
}


@pytest.mark.parametrize("query", HUGE)
def test_no_query_is_too_large_to_be_answered_soon(api, query):
    assert api.get("/workflow/search", query=HUGE[query]).status_code in (200, 400)


def test_invalid_json_in_the_database_is_skipped(api, clock):
    api.define(simple("pay"))
    api.start(input={"a": "x\0y", "b": {"c": 1}})
    found = api.start(input={"a": "x", "b": {"c": 1}, "long": 12345678901234567890123456789})

    assert found in ids(api.get("/workflow/search", query="input.b.c = 1"))
    assert ids(api.get("/workflow/search", query="input.long > 5")) == [found]


@pytest.fixture
def near(monkeypatch):
    """Limit searches to a small number of rows."""
    monkeypatch.setattr(query_compiler, "FREE_TEXT_SCAN_LIMIT", 2)


def test_free_text_is_searched_in_the_newest_runs_and_the_response_states_it(reader, shop, near):
    reply = reader.get("/workflow/search", freeText="order").json()
    everything = reader.get("/workflow/search").json()

    assert [found["workflowId"] for found in reply["results"]] == [shop["done"], shop["paused"]][
        : len(reply["results"])
    ]
    assert reply["searchedSince"] == reader.workflow(shop["paused"])["startTime"]
    assert "searchedSince" not in everything


@pytest.mark.parametrize("word", ["{waits}", "cu-1"])
def test_free_text_that_is_an_id_is_found_at_any_age(reader, shop, near, word):
    assert ids(reader.get("/workflow/search", freeText=word.format(**shop))) == [shop["waits"]]


def test_totals_above_the_counting_limit_stay_above_the_page(api, clock, monkeypatch):
    monkeypatch.setattr(result_pages, "MAX_COUNTED", 2)
    api.define(simple("pay"))
    for _ in range(6):
        api.start()

    found, start = [], 0
    while True:
        reply = api.get("/workflow/search", start=start, size=1).json()
        found += reply["results"]
        start += 1
        if start >= reply["totalHits"]:
            break

    assert len({each["workflowId"] for each in found}) == 6
    assert (reply["totalHits"], "totalHitsIsLowerBound" in reply) == (6, False)
    assert api.get("/workflow/search", size=1).json()["totalHitsIsLowerBound"] is True


def test_a_deep_page_continues_after_the_previous_one(api, clock, monkeypatch):
    monkeypatch.setattr(result_pages, "DEEP_PAGE_START", 2)
    api.define(simple("pay"))
    first = []
    for _ in range(6):
        clock.advance(seconds=1)
        first.insert(0, api.start())

    one = api.get("/workflow/search", start=0, size=2, queryId="").json()
    newer = api.start()
    remembered = ids(api.get("/workflow/search", start=2, size=2))
    continued = ids(api.get("/workflow/search", start=2, size=2, queryId=one["queryId"], skipCache="true"))
    counted = ids(api.get("/workflow/search", start=2, size=2, skipCache="true"))

    assert [found["workflowId"] for found in one["results"]] == first[:2]
    assert remembered == continued == first[2:4]
    assert counted == first[1:3] and newer not in counted


@pytest.mark.parametrize("query_id", ["nonsense", "W10=", "bnVsbA==", "\u00e9", "WyJ4Iiwx"])
def test_an_unknown_query_id_is_ignored(reader, shop, query_id):
    assert len(ids(reader.get("/workflow/search", queryId=query_id))) == 4


ADDRESSES = ["workflow/search", "workflow/search-v2", "workflow/search-by-tasks", "tasks/search", "tasks/search-v2"]


@pytest.mark.parametrize("query", ["", "status IN (SCHEDULED, RUNNING)", "input.n > 1", "workflowType = order"])
@pytest.mark.parametrize("address", ADDRESSES)
def test_a_page_takes_few_statements_for_any_size(api, clock, address, query):
    api.define(simple("pay"))
    for number in range(12):
        api.start(input={"n": number}, correlationId=f"c-{number}")
    api.get(f"/{address}")

    with Counted() as counted:
        assert api.get(f"/{address}", query=query, size=10).status_code == 200

    # PostgreSQL needs the statistics for joined tables before the query; they are removed afterwards.
    assert counted.count <= (8 if connection.vendor == "postgresql" else 6), counted.statements
