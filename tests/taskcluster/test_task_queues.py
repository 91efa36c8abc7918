"""Queues and workers (taskcluster §1.5, §5)."""

import pytest

from .conftest import HOUR, LINUX, refusal_code

WORKERS = "/provisioners/proj/worker-types/linux/workers"
DAY = 24 * HOUR


def paged(queue, path: str, name: str, **query) -> list:
    """Return all pages of a list, with two rows per page."""
    found, token = [], {}
    while True:
        page = queue.get(path, limit=2, **token, **query).json()
        found += page[name]
        if "continuationToken" not in page:
            return found
        token = {"continuationToken": page["continuationToken"]}


def test_pending_and_claimed_tasks_are_counted(queue):
    for _ in range(3):
        queue.create()
    queue.claim()
    facts = {"provisionerId": "proj", "workerType": "linux", "taskQueueId": LINUX}

    assert queue.get(f"/pending/{LINUX}").json() == {**facts, "pendingTasks": 2}
    assert queue.get(f"/task-queues/{LINUX}/counts").json() == {**facts, "pendingTasks": 2, "claimedTasks": 1}
    many = queue.post("/task-queues/counts", {"taskQueueIds": ["proj/none", LINUX]}).json()["taskQueueCounts"]
    assert [(each["taskQueueId"], each["pendingTasks"], each["claimedTasks"]) for each in many] == [
        ("proj/none", 0, 0),
        (LINUX, 2, 1),
    ]


def test_an_overdue_task_is_not_pending(queue):
    queue.create(deadline=queue.at(60))
    queue.clock.advance(seconds=61)

    assert queue.get(f"/pending/{LINUX}").json()["pendingTasks"] == 0
    assert queue.get(f"/task-queues/{LINUX}/pending").json() == {"tasks": []}


def test_pending_and_claimed_tasks_are_listed_oldest_first(queue):
    ids = []
    for _ in range(5):
        ids.append(queue.create())
        queue.later(1)
    pending = paged(queue, f"/task-queues/{LINUX}/pending", "tasks")
    assert [each["taskId"] for each in pending] == ids
    assert pending[0] == {
        "taskId": ids[0], "runId": 0, "inserted": queue.at(-5), "task": queue.get(f"/task/{ids[0]}").json()
    }  # fmt: skip

    for id in reversed(ids):
        queue.claim_specific_task(id)
        queue.later(1)

    claimed = paged(queue, f"/task-queues/{LINUX}/claimed", "tasks")
    assert [each["taskId"] for each in claimed] == ids[::-1]
    assert (claimed[0]["workerGroup"], claimed[0]["workerId"], claimed[0]["claimed"]) == ("here", "w1", queue.at(-5))


def test_tasks_with_equal_times_appear_on_exactly_one_page(queue):
    ids = {queue.create() for _ in range(5)}

    assert {each["taskId"] for each in paged(queue, f"/task-queues/{LINUX}/pending", "tasks")} == ids


def test_a_queue_is_known_after_its_first_poll(queue):
    queue.create()
    assert refusal_code(queue.get(f"/task-queues/{LINUX}")) == (404, "ResourceNotFound")

    queue.claim()

    facts = {"description": "", "stability": "experimental", "expires": queue.at(DAY), "lastDateActive": queue.at(0)}
    assert queue.get("/task-queues/proj%2Flinux").json() == {"taskQueueId": LINUX, **facts}
    assert queue.get("/provisioners/proj/worker-types/linux").json() == {
        "provisionerId": "proj", "workerType": "linux", "taskQueueId": LINUX, **facts
    }  # fmt: skip
    assert queue.get("/provisioners/proj").json() == {"provisionerId": "proj", **facts}


def test_queues_and_provisioners_are_listed_in_pages(queue):
    names = ["a/one", "a/two", "b-c/one", "proj/linux", "proj/mac"]
    for name in reversed(names):
        queue.claim(queue=name)

    assert [each["taskQueueId"] for each in paged(queue, "/task-queues", "taskQueues")] == names
    assert [each["provisionerId"] for each in paged(queue, "/provisioners", "provisioners")] == ["a", "b-c", "proj"]
    types = paged(queue, "/provisioners/proj/worker-types", "workerTypes")
    assert [each["workerType"] for each in types] == ["linux", "mac"]
    assert queue.get("/provisioners/Proj/worker-types").json() == {"workerTypes": []}


@pytest.mark.parametrize("path", ["/provisioners/none", "/provisioners/proj/worker-types/none", f"{WORKERS}/here/w9"])
def test_an_unpolled_queue_is_not_found(queue, path):
    assert refusal_code(queue.get(path)) == (404, "ResourceNotFound")


def test_a_worker_is_returned_with_its_last_twenty_tasks(queue):
    ids = []
    for _ in range(22):
        ids.append(queue.create())
        queue.claim()
        queue.later(1)

    worker = queue.get(f"{WORKERS}/here/w1").json()

    assert [each["taskId"] for each in worker["recentTasks"]] == ids[2:]
    assert (worker["firstClaim"], worker["lastDateActive"]) == (queue.at(-22), queue.at(-22))
    assert worker["quarantineUntil"] < worker["firstClaim"]
    [listed] = queue.get(WORKERS).json()["workers"]
    assert listed["latestTask"] == {"taskId": ids[-1], "runId": 0}
    assert "quarantineUntil" not in listed


def test_workers_are_listed_by_whether_they_are_in_quarantine(queue):
    for name in ("w1", "w2", "w3"):
        queue.claim(worker=name)
    queue.send("PUT", f"{WORKERS}/here/w2", {"quarantineUntil": queue.at(HOUR), "quarantineInfo": "its disk is full"})

    def names(**query) -> list:
        return [each["workerId"] for each in paged(queue, WORKERS, "workers", **query)]

    assert (names(), names(quarantined="true"), names(quarantined="false")) == (
        ["w1", "w2", "w3"],
        ["w2"],
        ["w1", "w3"],
    )
    shown = queue.get(f"{WORKERS}/here/w2").json()
    assert shown["quarantineUntil"] == queue.at(HOUR)
    assert shown["quarantineDetails"] == [
        {
            "clientId": "anonymous",
            "updatedAt": queue.at(0),
            "quarantineUntil": queue.at(HOUR),
            "quarantineInfo": "its disk is full",
        }
    ]
    lifted = queue.send("PUT", f"{WORKERS}/here/w2", {"quarantineUntil": "0001-01-01T00:00:00Z"})
    assert lifted.json()["quarantineUntil"] == "0001-01-01T00:00:00.000Z"


def test_an_expired_worker_is_listed_only_in_quarantine(queue):
    for name in ("w1", "w2"):
        queue.claim(worker=name)
    queue.send("PUT", f"{WORKERS}/here/w2", {"quarantineUntil": queue.at(9 * DAY)})
    queue.clock.advance(seconds=2 * DAY)

    assert refusal_code(queue.get(f"{WORKERS}/here/w1")) == (404, "ResourceNotFound")
    assert [each["workerId"] for each in queue.get(WORKERS).json()["workers"]] == ["w2"]


def test_a_worker_can_be_declared_before_its_first_poll(queue):
    path = "/provisioners/proj/worker-types/linux/here/w7"

    declared = queue.send("PUT", path, {"expires": queue.at(9 * DAY)}).json()

    assert (declared["expires"], declared["recentTasks"]) == (queue.at(9 * DAY), [])
    assert declared == queue.get(f"{WORKERS}/here/w7").json()
    assert queue.get(f"/task-queues/{LINUX}").json()["expires"] == queue.at(9 * DAY)
    assert refusal_code(queue.send("PUT", path, {})) == (400, "InputValidationError")
    assert refusal_code(queue.send("PUT", path, {"quarantineUntil": queue.at(1)})) == (400, "InputValidationError")
    assert refusal_code(queue.send("PUT", f"{WORKERS}/here/w8", {"quarantineUntil": queue.at(1)})) == (
        404,
        "ResourceNotFound",
    )
    gone = queue.send("PUT", path.replace("w7", "w9"), {"expires": queue.at(-DAY)})
    assert gone.json()["expires"] == queue.at(-DAY)
