"""The cache of resolved definitions."""

import pytest

from conductor_app.core.errors import NotFound
from conductor_app.definitions import resolved_definitions
from conductor_app.runs.commands.start import StartRequest, start_run
from tests.builders import definition, step
from tests.scenario import ACTOR, register_definitions, run_commit_hooks

pytestmark = pytest.mark.django_db


def test_names_that_do_not_exist_take_no_memory():
    register_definitions(definition(step("x")))
    with run_commit_hooks():
        start_run(StartRequest("order"), ACTOR)

    for number in range(20):
        with pytest.raises(NotFound), run_commit_hooks():
            start_run(StartRequest(f"order {number}"), ACTOR)
        with pytest.raises(NotFound), run_commit_hooks():
            start_run(StartRequest("order", version=number + 2), ACTOR)

    assert list(resolved_definitions.current_cache().plans) == [("order", None)]
