"""The intervals of periodic jobs, as the rows of beat state them."""

import pytest
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from conductor_app.celery import app
from conductor_app.processes.background import PERIODIC_JOBS, sync_periodic_jobs

pytestmark = pytest.mark.django_db


def test_the_periodic_task_rows_match_the_table():
    sync_periodic_jobs()

    assert {task.name: task.task for task in PeriodicTask.objects.all()} == {
        name: beat.job for name, beat in PERIODIC_JOBS.items()
    }


def test_an_unchanged_table_writes_nothing():
    sync_periodic_jobs()
    changed_at = PeriodicTask.objects.get(name="sweep").date_changed

    sync_periodic_jobs()

    assert PeriodicTask.objects.get(name="sweep").date_changed == changed_at
    assert PeriodicTask.objects.count() == len(PERIODIC_JOBS)
    assert IntervalSchedule.objects.count() == len({beat.every_seconds for beat in PERIODIC_JOBS.values()})


def test_a_periodic_task_disabled_by_an_operator_stays_disabled():
    sync_periodic_jobs()
    PeriodicTask.objects.filter(name="prune").update(enabled=False)

    sync_periodic_jobs()

    assert not PeriodicTask.objects.get(name="prune").enabled


def test_a_manually_changed_row_is_corrected():
    sync_periodic_jobs()
    PeriodicTask.objects.filter(name="sweep").update(expire_seconds=None)

    sync_periodic_jobs()

    assert PeriodicTask.objects.get(name="sweep").expire_seconds == 10


@pytest.mark.parametrize("beat", PERIODIC_JOBS.values(), ids=PERIODIC_JOBS)
def test_every_periodic_task_calls_a_registered_celery_task(beat):
    app.loader.import_default_modules()

    assert beat.job in app.tasks
    assert beat.expire_seconds >= beat.every_seconds
