"""New work for a built-in worker triggers a Celery job at once."""

import pytest
from kombu.exceptions import OperationalError

from conductor_app import notifications
from conductor_app.celery import app
from conductor_app.processes import jobs


@pytest.fixture
def broker():
    """Return the broker's queue, initially empty."""
    with app.connection_for_write() as connection:
        queue = connection.SimpleQueue("celery")
        queue.clear()
        yield queue
        queue.clear()


def test_work_for_a_built_in_worker_triggers_its_job(broker):
    notifications.announce(["HTTP"])

    assert broker.get(timeout=2).headers["task"] == jobs.work.name


def test_an_ai_task_triggers_the_job_with_threads_of_its_own(broker):
    notifications.announce(["LLM_CHAT_COMPLETE"])

    assert broker.get(timeout=2).headers["task"] == jobs.call_models.name


def test_work_for_external_workers_triggers_no_job(broker):
    notifications.announce(["pay", "ship"])

    assert broker.qsize() == 0


def test_many_tasks_trigger_few_messages(broker):
    notifications.announce(["HTTP"] * 1000)

    assert 1 <= broker.qsize() <= 20


def test_an_unreachable_broker_is_not_contacted_for_a_while(monkeypatch):
    tries = []

    def refuse(**_):
        tries.append("try")
        raise OperationalError("connection refused")

    monkeypatch.setattr(jobs.work, "apply_async", refuse)

    notifications.announce(["HTTP", "HTTP"])
    notifications.announce(["HTTP"])

    assert tries == ["try"]
