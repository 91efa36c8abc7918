"""The HTTP_POLL task: it sends one request per claim and sets the time of the next one."""

import pytest

from conductor_app.system_tasks.http import HttpLimits, HttpPoll
from tests.recording_web_server import json_answer, running_web_server

LOOPBACK = ("127.0.0.0/8",)
DONE = "$.output.response.body.done"


@pytest.fixture
def server():
    with running_web_server() as server:
        server.answers["/a"] = json_answer({"done": False, "left": 3})
        yield server


def poll(server, polls=1, path="/a", **inputs):
    http_poll = HttpPoll(lambda: HttpLimits(allowed_networks=LOOPBACK))
    request = {"uri": f"{server.url}{path}", "method": "GET"}
    return http_poll.perform_again({"http_request": request, "terminationCondition": DONE, **inputs}, polls)


def test_a_response_that_does_not_meet_the_condition_is_stored_and_polled_again(server):
    outcome = poll(server, polls=4, pollingInterval=20)

    assert (outcome.status, outcome.callback_seconds) == ("IN_PROGRESS", 20)
    assert (outcome.output["polls"], outcome.output["response"]["body"]["left"]) == (4, 3)


def test_a_response_that_meets_the_condition_completes_the_task(server):
    server.answers["/a"] = json_answer({"done": True})

    outcome = poll(server, polls=3)

    assert (outcome.status, outcome.output["polls"]) == ("COMPLETED", 3)
    assert outcome.output["response"]["statusCode"] == 200


WAYS = {
    "the stored output": "$.output.response.body.left === 3",
    "its parts without the response": "$.output.body.left === 3 && $.output.statusCode === 200",
    "the body's fields": "$.left === 3",
    "the task's inputs": "$.wanted === $.output.response.body.left && $.input.wanted === 3",
    "a function": "(function () { return $.output.response.body.left > 2; })();",
    "a number above zero": "$.left",
}


@pytest.mark.parametrize("condition", WAYS.values(), ids=WAYS)
def test_a_condition_can_read_status_headers_and_body(server, condition):
    assert poll(server, terminationCondition=condition, wanted=3).status == "COMPLETED"


@pytest.mark.parametrize("value", ["false", "0", "null", "'true'", "[]"])
def test_only_true_or_a_positive_number_meets_the_condition(server, value):
    assert poll(server, terminationCondition=value).status == "IN_PROGRESS"


@pytest.mark.parametrize("condition", [None, "", " "])
def test_without_a_condition_the_first_response_completes_the_task(server, condition):
    assert poll(server, terminationCondition=condition).status == "COMPLETED"


@pytest.mark.parametrize(
    ("strategy", "waits"), [("FIXED", [5, 5, 5]), ("LINEAR_BACKOFF", [5, 10, 15]), ("EXPONENTIAL_BACKOFF", [5, 10, 20])]
)
def test_how_the_interval_grows(server, strategy, waits):
    found = [poll(server, polls=n, pollingInterval=5, pollingStrategy=strategy) for n in (1, 2, 3)]

    assert [outcome.callback_seconds for outcome in found] == waits


def test_an_interval_never_grows_beyond_a_day(server):
    assert poll(server, polls=10**6, pollingStrategy="EXPONENTIAL_BACKOFF").callback_seconds == 86_400


def test_poll_fields_can_be_in_the_request_as_the_python_sdk_sends_them(server):
    server.answers["/a"] = json_answer({"done": 0})
    request = {"uri": f"{server.url}/a", "method": "GET", "terminationCondition": DONE, "pollingInterval": 7}
    http_poll = HttpPoll(lambda: HttpLimits(allowed_networks=LOOPBACK))

    assert http_poll.perform({"http_request": request}).callback_seconds == 7


def test_the_task_fails_after_its_maximum_number_of_polls(server):
    assert poll(server, polls=2, maxPollCount=3).status == "IN_PROGRESS"

    last = poll(server, polls=3, maxPollCount=3)

    assert (last.status, "within 3 polls" in last.reason) == ("FAILED", True)


@pytest.mark.parametrize("condition", [DONE, "$.output.response.body.left === 3", "", "$.output.statusCode === 200"])
def test_an_error_status_is_polled_again(server, condition):
    outcome = poll(server, polls=2, path="/nowhere", terminationCondition=condition, pollingInterval=9)

    assert (outcome.status, outcome.callback_seconds) == ("IN_PROGRESS", 9)
    assert (outcome.output["statusCode"], outcome.output["polls"], "404" in outcome.reason) == (404, 2, True)


@pytest.mark.parametrize("condition", ["$.output.statusCode === 404", "$.statusCode >= 400"])
def test_an_error_status_can_meet_the_condition(server, condition):
    assert poll(server, path="/nowhere", terminationCondition=condition).status == "COMPLETED"


def test_the_last_refusal_is_the_reason_for_giving_up(server):
    outcome = poll(server, polls=3, path="/nowhere", maxPollCount=3)

    assert (outcome.status, "within 3 polls" in outcome.reason, "404" in outcome.reason) == ("FAILED", True, True)


def test_an_unreachable_server_is_polled_again(server):
    outcome = poll(server, http_request={"uri": "http://127.0.0.1:1/", "method": "GET"})

    assert (outcome.status, "Failed to invoke" in outcome.reason) == ("IN_PROGRESS", True)


def test_a_request_that_makes_no_sense_is_not_repeated(server):
    http_poll = HttpPoll(lambda: HttpLimits(allowed_networks=LOOPBACK))

    assert http_poll.perform({"http_request": {"method": "GET"}, "terminationCondition": DONE}).status == "FAILED"


def test_a_condition_that_breaks_fails_for_good(server):
    outcome = poll(server, terminationCondition="$.a.b.c")

    assert (outcome.status, "terminationCondition" in outcome.reason) == ("FAILED_WITH_TERMINAL_ERROR", True)


MISTAKES = {
    "a strategy nobody knows": {"pollingStrategy": "SOMETIMES"},
    "a strategy that is no text": {"pollingStrategy": ["FIXED"]},
    "a condition that is no text": {"terminationCondition": {"a": 1}},
    "an interval in words": {"pollingInterval": "often"},
    "an interval without end": {"pollingInterval": "inf"},
    "a count below zero": {"maxPollCount": -1},
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_an_invalid_input_fails_without_a_request(server, mistake):
    outcome = poll(server, **mistake)

    assert outcome.status == "FAILED_WITH_TERMINAL_ERROR"
    assert next(iter(mistake)) in outcome.reason
    assert server.asked == []
