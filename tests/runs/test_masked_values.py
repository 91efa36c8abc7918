"""Masked values and their encrypted form appear on no page, in no file and in no reply."""

import pytest

from conductor_app.core.masking import MARK, REDACTED
from tests.api_fixtures import Api
from tests.builders import human, policy, step
from tests.scenario import Scenario

NUMBER = "4711-0815"
CARD = {"card": {"number": NUMBER, "holder": "Ada"}, "number": NUMBER}
RUN = "/admin/conductor/run"


@pytest.fixture
def scenario(clock, db) -> Scenario:
    """Return a failed run; another run waits for a person."""
    seen = {"card": "${workflow.input.card}", "number": "${workflow.input.number}"}
    fields = {"input": CARD, "maskedFields": ["number"]}
    waits = Scenario(clock, human("ask", inputs=seen), name="asks", **fields)
    scenario = Scenario(clock, step("pay", inputs=seen), step("ship", policy=policy(retries=1), inputs=seen), **fields)
    scenario.worker("pay").completes(number=NUMBER, deep=[{"number": NUMBER}])
    scenario.worker("ship").fails("no stock")
    scenario.worker("ship").says("FAILED_FOR_GOOD", {"number": NUMBER}, "no stock at all")
    scenario.waits = waits.task("ask").id
    return scenario


def pages(scenario: Scenario) -> list[str]:
    """Return the URLs of all pages that can show the run's data."""
    run = f"{RUN}/{scenario.id}"
    names = ("timeline", "data", "tasks", "events", "audit", "diagram")
    tabs = [f"{run}/change/?tab={tab}&task={task}" for tab in names for task in ("pay", "ship")]
    return [
        *tabs,
        f"{run}/raw/input/",
        f"{RUN}/",
        f"{RUN}/?q=4711",
        f"{RUN}/?value=input.card.holder%3DAda",
        f"{RUN}/export.csv",
        f"{RUN}/export.json",
        f"/admin/runs/{scenario.id}/compare/",
        "/admin/failures/",
        "/admin/human-tasks/",
        f"/admin/human-tasks/{scenario.waits}/",
        "/admin/",
    ]


def test_no_page_or_file_contains_a_masked_value(operator, scenario):
    shown = {}
    for address in pages(scenario):
        reply = operator.get(address)
        assert reply.status_code == 200, address
        content = b"".join(reply.streaming_content) if reply.streaming else reply.content
        shown[address] = content.decode()

    assert [address for address, page in shown.items() if NUMBER in page or MARK in page] == []
    assert sum(REDACTED in page for page in shown.values()) > 3


@pytest.mark.django_db
def test_no_response_contains_a_masked_value(scenario):
    api = Api()
    addresses = [
        f"/workflow/{scenario.id}",
        f"/workflow/{scenario.id}/status?includeOutput=true&includeVariables=true",
        f"/workflow/{scenario.id}/tasks",
        *(f"/{room}/{search}" for room in ("workflow", "tasks") for search in ("search", "search-v2")),
        "/workflow/search-by-tasks",
        f"/tasks/{scenario.task('ship').id}",
    ]

    replies = {address: api.get(address).content.decode() for address in addresses}

    assert [address for address, reply in replies.items() if NUMBER in reply or MARK in reply] == []
    assert all(REDACTED in reply for reply in replies.values())
