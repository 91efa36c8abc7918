"""Starting twice with one idempotency key."""

import pytest

from conductor_app.core.errors import Conflict
from conductor_app.runs.commands.start import StartRequest, start_run
from tests.builders import definition, step


def request(strategy: str) -> StartRequest:
    """Return a start request with an inline definition whose name differs from the request's."""
    document = {**definition(step("a")), "name": "inline"}
    return StartRequest("asked", document=document, idempotency_key="k", idempotency_strategy=strategy)


def test_the_earlier_run_is_returned_also_where_the_definition_in_place_has_another_name(transactional_db):
    first = start_run(request("RETURN_EXISTING"), "me")

    assert start_run(request("RETURN_EXISTING"), "me") == first


def test_a_key_that_was_used_is_refused(transactional_db):
    start_run(request("FAIL"), "me")

    with pytest.raises(Conflict):
        start_run(request("FAIL"), "me")
