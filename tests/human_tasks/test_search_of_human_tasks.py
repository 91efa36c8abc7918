"""Searches of the Human Tasks API: filters and pages. The tests read the same rows."""

import pytest

from tests.human_tasks.test_human_tasks_api import assignment, begin, hit_ids, human, run_of, search


@pytest.fixture(scope="module")
def tasks_by_case(stock) -> dict[str, str]:
    """Return tasks in all states, by the name of the case."""
    api, clock = stock
    requests = {
        "pending": {"steps": [human()]},
        "bob": {},
        "ann": {"steps": [human("second", assignments=[assignment("ann")])]},
        "claimed": {"input": {"order": {"id": 42, "words": "red shoes"}}},
        "done": {},
        "ended": {},
    }
    tasks = {}
    for name, request in requests.items():
        clock.advance(seconds=1)
        tasks[name] = begin(api, *request.pop("steps", ()), **request)
    api.post(f"/human/tasks/{tasks['claimed']}/externalUser/bob")
    api.post(f"/human/tasks/{tasks['done']}/update?complete=true", {"price": 12})
    api.delete(f"/workflow/{run_of(api, tasks['ended'])['workflowId']}")
    return tasks


BOB = {"userType": "EXTERNAL_USER", "user": "bob"}
FILTERS = [
    ({}, "ended done claimed ann bob pending"),
    ({"states": ["PENDING"]}, "pending"),
    ({"states": ["ASSIGNED"]}, "ann bob"),
    ({"states": ["IN_PROGRESS"]}, "claimed"),
    ({"states": ["PENDING", "ASSIGNED"]}, "ann bob pending"),
    ({"states": ["PENDING", "IN_PROGRESS"]}, "claimed pending"),
    ({"states": ["PENDING", "ASSIGNED", "IN_PROGRESS"]}, "claimed ann bob pending"),
    ({"states": ["COMPLETED"]}, "done"),
    ({"states": ["DELETED"]}, "ended"),
    ({"states": ["TIMED_OUT"]}, ""),
    ({"states": ["ASSIGNED", "COMPLETED"], "assignees": [BOB]}, "done bob"),
    ({"states": ["ASSIGNED"], "assignees": [{"user": "ann"}]}, "ann"),
    ({"assignees": [{"userType": "CONDUCTOR_USER", "user": "bob"}]}, ""),
    ({"claimants": [BOB]}, "claimed"),
    ({"claimants": [{"user": "eve"}]}, ""),
    ({"taskRefNames": ["second"]}, "ann"),
    ({"definitionNames": ["second"]}, "ann"),
    ({"displayNames": ["second"]}, "ann"),
    ({"workflowNames": ["other"]}, ""),
    ({"taskInputQuery": "order.id = 42"}, "claimed"),
    ({"taskInputQuery": "order.id = 41"}, ""),
    ({"taskInputQuery": "order.id > 41 AND order.words = 'red shoes'"}, "claimed"),
    ({"taskInputQuery": "red shoes"}, "claimed"),
    ({"taskOutputQuery": "price >= 12"}, "done"),
    ({"fullTextQuery": "RED"}, "claimed"),
    ({"fullTextQuery": "second"}, "ann"),
    ({"searchType": "INBOX"}, "pending"),
]


@pytest.mark.parametrize(("filters", "expected"), FILTERS, ids=str)
def test_a_search_finds_by_each_filter_the_newest_first(reader, tasks_by_case, filters, expected):
    hits = search(reader, **filters)

    names = {task: name for name, task in tasks_by_case.items()}
    assert " ".join(names[each["taskId"]] for each in hits["results"]) == expected
    assert (hits["totalHits"], hits["hits"], hits["start"]) == (len(expected.split()), len(expected.split()), 0)
    assert hits["pageSizeLimit"] == 100 and "totalHitsIsLowerBound" not in hits


def test_a_search_is_read_page_by_page(reader, tasks_by_case):
    pages = [search(reader, start=start, size=2) for start in (0, 2, 4, 6)]

    assert [len(page["results"]) for page in pages] == [2, 2, 2, 0]
    assert {page["totalHits"] for page in pages} == {6}
    assert len({each["taskId"] for page in pages for each in page["results"]}) == 6
    assert hit_ids(reader, assignees=[BOB], start=1, size=1) == [tasks_by_case["done"]]


def test_a_search_scans_a_limited_number_and_reports_that(reader, tasks_by_case, monkeypatch):
    from conductor_app.human_tasks import queries as human_tasks

    monkeypatch.setattr(human_tasks, "SEARCHED_ROWS", 2)
    hits = search(reader, states=["PENDING", "ASSIGNED", "IN_PROGRESS"])
    assert (hits["totalHits"], hits["totalHitsIsLowerBound"]) == (2, True) and hits["searchedSince"] > 0
    monkeypatch.undo()
    monkeypatch.setattr(human_tasks, "MAX_READ", 2)
    hits = search(reader, displayNames=["Approve"])
    assert (hits["totalHits"], hits["totalHitsIsLowerBound"]) == (2, True)


def test_display_names_of_open_tasks_are_listed(reader, tasks_by_case):
    assert reader.get("/human/tasks/getTaskDisplayNames").json() == ["Approve", "approve", "second"]
    assert reader.get("/human/tasks/getTaskDisplayNames?searchType=INBOX").json() == ["approve"]
