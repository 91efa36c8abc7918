"""The page that says why one task waits and when its turn comes."""

import pytest

from conductor_app.engine.definitions import definition_commands
from conductor_app.models import Attempt
from tests.admin.reading import button_names, html, page_text
from tests.builders import policy, step_without_policy
from tests.story import ACTOR, Story

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(clock) -> tuple[Story, Attempt]:
    """The second of two runs, while the first holds the only place of a limit."""
    story = Story(clock, step_without_policy("ship"), tasks=[policy("ship", concurrent_limit=1)])
    clock.advance(seconds=1)
    attempt = story.starts("order").task("ship")
    story.worker("ship", "van@7").polls()
    return story, attempt


def page(attempt: Attempt) -> str:
    return f"/admin/turn/{attempt.pk}/"


def test_it_names_the_gate_and_who_holds_it(operator, waiting):
    story, attempt = waiting

    told = page_text(operator.get(page(attempt)))

    assert "1 of 1 tasks of this name run (concurrentExecLimit). Position 1" in told
    assert f"{story.id} with van@7" in told
    assert "Change the limit in the definition" in told


def test_raising_the_limit_opens_the_gate(operator, waiting):
    _, attempt = waiting

    definition_commands.save_task(policy("ship", concurrent_limit=2), ACTOR)

    assert "Every gate is open" in page_text(operator.get(page(attempt)))


def test_what_does_not_wait_says_so(operator, waiting):
    story, _ = waiting

    assert "The task is not waiting in a queue" in page_text(operator.get(page(story.task("ship"))))
    assert operator.get("/admin/turn/nobody/").status_code == 404


def test_what_is_shown_while_it_changes_has_its_state_and_buttons_with_it(operator, waiting):
    story, attempt = waiting
    taken = story.task("ship")

    assert "ship attempt 1 Pending" in page_text(operator.get(f"{page(attempt)}live/"))
    assert "ship attempt 1 Running" in page_text(operator.get(f"{page(taken)}live/"))
    assert button_names(operator.get(f"{page(taken)}live/")) == ["release", "conclude"]


def test_the_run_and_the_queue_lead_there(operator, waiting):
    _, attempt = waiting

    assert page(attempt) in html(operator.get(f"/admin/conductor/attempt/{attempt.pk}/change/"))
    assert page(attempt) in html(operator.get("/admin/queue/?name=ship"))


def test_it_costs_few_queries(operator, viewer, waiting, django_assert_max_num_queries):
    _, attempt = waiting
    operator.get(page(attempt))
    with django_assert_max_num_queries(15):
        operator.get(page(attempt))
    assert button_names(operator.get(page(attempt))) == ["front", "priority", "conclude"]
    assert button_names(viewer.get(page(attempt))) == []


def test_it_names_what_is_handed_out_before_it(operator, waiting, clock):
    story, attempt = waiting
    clock.advance(seconds=1)
    other = story.starts("order").task("ship")

    told = page_text(operator.get(page(other)))

    assert "Preceding tasks" in told and f"/admin/turn/{attempt.pk}/" in html(operator.get(page(other)))
