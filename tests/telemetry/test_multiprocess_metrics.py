"""Several processes count into one folder."""

import os
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured
from prometheus_client.parser import text_string_to_metric_families

from conductor_app.telemetry import folder
from tests.management.server import ROOT

pytestmark = pytest.mark.slow

COUNTS = """
import os, django
os.environ["DJANGO_SETTINGS_MODULE"] = "conductor_app.settings.testing"
django.setup()
from conductor_app.telemetry import metrics
metrics.RUNS_STARTED.count("shop")
metrics.WAITING_POLLS.inc()
print(metrics.render_metrics("")[0].decode())
"""


@pytest.fixture
def shared(tmp_path, monkeypatch):
    monkeypatch.setenv(folder.VARIABLE, str(tmp_path / "counts"))
    return tmp_path / "counts"


def counting_process(shared):
    """Return the metrics of a process that counts one run and holds one poll."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTS], cwd=ROOT, env=os.environ, capture_output=True, text=True, check=True
    )
    samples = [s for family in text_string_to_metric_families(done.stdout) for s in family.samples]
    return {s.name: s.value for s in samples if s.name.startswith(("conductor_runs_started", "conductor_waiting"))}


def test_counters_of_an_ended_process_stay_and_its_gauges_are_removed(shared):
    assert counting_process(shared) == {"conductor_runs_started_total": 1, "conductor_waiting_polls": 1}
    assert counting_process(shared) == {"conductor_runs_started_total": 2, "conductor_waiting_polls": 1}


def test_a_new_start_begins_at_zero(shared):
    counting_process(shared)

    folder.empty_folder()

    assert list(shared.glob("*.db")) == []


def test_a_start_does_not_reset_the_counters_of_running_processes(shared):
    shared.mkdir()
    mine, strange = shared / f"counter_{os.getpid()}.db", shared / "notes.txt"
    mine.touch()
    strange.touch()

    folder.empty_folder()

    assert mine.exists()
    assert strange.exists()


def test_without_a_folder_one_is_made_up_and_removed(monkeypatch):
    monkeypatch.setenv(folder.VARIABLE, "")
    folder.empty_folder()
    made_up = folder.folder_path()
    assert made_up.is_dir()

    folder.remove_folder()

    assert not made_up.exists()


def test_a_folder_that_cannot_be_made_is_refused_by_name(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv(folder.VARIABLE, str(tmp_path / "file" / "counts"))

    with pytest.raises(ImproperlyConfigured, match=r"PROMETHEUS_MULTIPROC_DIR=.* is refused: Not a directory"):
        folder.create_folder()
