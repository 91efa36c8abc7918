"""Queue sizes (api §1.4)."""

import pytest

from tests.builders import simple


@pytest.fixture
def two_waiting(api, clock):
    """Create two pending tasks, one of them in a domain."""
    api.define(simple("pay"))
    api.start()
    api.start(taskToDomain={"pay": "blue"})


def test_every_requested_type_has_a_size(api, two_waiting):
    assert api.get("/tasks/queue/sizes", taskType=["pay", "ship"]).json() == {"pay": 1, "ship": 0}
    assert api.get("/tasks/queue/sizes", taskType="pay,ship").json() == {"pay": 1, "ship": 0}


def test_a_size_is_a_plain_number(api, two_waiting):
    assert api.get("/tasks/queue/size", taskType="pay").json() == 1
    assert api.get("/tasks/queue/size", taskType="pay", domain="blue").json() == 1
    assert api.get("/tasks/queue/size", taskType="pay", domain="red").json() == 0


def test_all_queues_are_listed_by_name(api, two_waiting):
    assert api.get("/tasks/queue/all").json() == {"blue:pay": 1, "pay": 1}
    assert api.get("/tasks/queue/all/verbose").json() == {
        "blue:pay": {"a": {"size": 1, "uacked": 0}},
        "pay": {"a": {"size": 1, "uacked": 0}},
    }


@pytest.mark.parametrize("address", ["sizes", "size", "polldata"])
def test_the_type_must_be_named(api, address):
    assert api.get(f"/tasks/queue/{address}").status_code == 400


def test_a_size_is_that_of_one_isolation_group(api, clock):
    request = {"inputParameters": {"http_request": {"uri": "http://127.0.0.1/", "method": "GET"}}}
    isolated = {"name": "get", "isolationGroupId": "blue", "executionNameSpace": "east"}
    api.define({"name": "get", "taskReferenceName": "get", "type": "HTTP", "taskDefinition": isolated, **request})
    api.start()

    assert api.get("/tasks/queue/size", taskType="HTTP").json() == 0
    assert api.get("/tasks/queue/all").json() == {"HTTP@east-blue": 1}
    size = api.get("/tasks/queue/size", taskType="HTTP", isolationGroupId="blue", executionNamespace="east")
    assert size.json() == 1
