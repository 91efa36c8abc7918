"""Secrets reach the worker that the author meant them for, and nobody else."""

import pytest

from conductor_app.access.secrets import revealed
from tests.builders import step
from tests.story import Story


@pytest.fixture(autouse=True)
def a_secret(monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_DB", "s3cret")


def handed_to(story: Story, name: str) -> dict:
    worker = story.worker(name)
    worker.polls()
    return revealed(worker.held.input, worker.held.task.memo.get("secrets", ()))


def test_a_secret_that_the_author_names_is_filled_in_when_the_task_is_handed_out(clock):
    story = Story(clock, step("a", inputs={"x": "${workflow.secrets.DB}"}))

    assert handed_to(story, "a") == {"x": "s3cret"}


def test_a_secret_that_only_data_names_stays_text(clock):
    story = Story(clock, step("a", inputs={"x": "${workflow.input.u}"}), input={"u": "${workflow.secrets.DB}"})

    assert handed_to(story, "a") == {"x": "${workflow.secrets.DB}"}
