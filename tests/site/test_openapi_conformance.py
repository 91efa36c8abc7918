"""Every operation of the OpenAPI document, called with valid and invalid requests."""

from collections.abc import Callable, Iterator
from functools import cache

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error

from conductor_app.site.openapi.pages import build_document
from conductor_app.wsgi import application
from tests.hypothesis_profile import scaled
from tests.reply_check import check_reply

pytestmark = [pytest.mark.slow, pytest.mark.one_database]

AT_ONCE = {"timeout": 0, "waitForSeconds": 0, "timeoutMillis": 0}
"""Parameters that keep operations from waiting; waiting has its own tests."""

ROOMS = [
    "", "admin", "applications", "auth", "debug", "definitions", "environment", "event", "files", "groups", "human",
    "insight", "integrations", "metadata", "model-budgets", "payloads", "prompts", "queue", "roles", "scheduler",
    "schema", "secrets", "secrets-v2", "tasks", "token", "users", "version", "webhook", "workflow",
]  # fmt: skip


def matches_the_document(context, response, case) -> None:
    """Check the reply as the test client does."""
    content_type = (response.headers.get("content-type") or [""])[0]
    path, status = case.operation.full_path, response.status_code
    check_reply(case.method, path, status, content_type, response.content, has_unknown_fields=True)


CHECKS = [not_a_server_error, matches_the_document]


@cache
def operations() -> list:
    """Return all documented operations. They are generated on first use, because that takes seconds."""
    schema = schemathesis.openapi.from_dict(build_document())
    schema.app = application
    return [found.ok() for found in schema.get_all_operations()]


def test_every_operation_is_exercised():
    assert sorted({operation.tags[0] for operation in operations()}) == ROOMS


@pytest.mark.parametrize("room", ROOMS)
def test_valid_requests_get_a_documented_response(transactional_db, room):
    assert list(contradictions(in_room(room), GenerationMode.POSITIVE)) == []


@pytest.mark.parametrize("room", ROOMS)
def test_invalid_requests_get_a_documented_response(transactional_db, room):
    # Every text is a valid name, so no invalid value exists for these parameters.
    choosy = (operation for operation in in_room(room) if operation.query.items or operation.body.items)

    assert list(contradictions(choosy, GenerationMode.NEGATIVE)) == []


def in_room(room: str) -> Iterator:
    return (operation for operation in operations() if operation.tags[0] == room)


def contradictions(tried, mode: GenerationMode) -> Iterator[str]:
    """Yield the differences between the server's reply and its document."""
    for operation in tried:
        try:
            attempts(operation, mode)()
        except Exception as found:
            yield f"{operation.label}: {found!r} {getattr(found, 'exceptions', '')}"


def attempts(operation, mode: GenerationMode) -> Callable[[], None]:
    """Return a test that sends a few deterministic requests."""

    @settings(
        max_examples=scaled(2),
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def attempt(case):
        if isinstance(case.query, dict):
            case.query |= {name: value for name, value in AT_ONCE.items() if name in case.query}
        case.call_and_validate(checks=CHECKS)

    return attempt
