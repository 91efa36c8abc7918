"""An import from a real conductor-oss server: `make test-import`."""

import json

import pytest

from conductor_app.definitions.models import TaskDefinition, WorkflowDefinition
from tests.importers.commands import import_conductor
from tests.importers.conductor_oss import require_conductor_oss, running_conductor_oss
from tests.importers.record import PATHS, record
from tests.importers.recorded_source import RECORDING, recorded_source
from tests.importers.source_objects import register

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def conductor_oss(tmp_path_factory):
    java, jar = require_conductor_oss()
    with running_conductor_oss(java, jar, tmp_path_factory.mktemp("conductor-oss")) as address:
        register(address)
        yield address


def test_the_recorded_source_gives_the_same_report_as_the_real_server(conductor_oss):
    with recorded_source() as recorded:
        expected = import_conductor(recorded.address, "--dry-run").report

    found = import_conductor(conductor_oss, "--dry-run").report

    for report in (expected, found):
        report.pop("source")
        for each in report["running"]:
            each.pop("oldest")
    assert found == expected


def test_the_recording_has_each_path_with_the_status_of_the_real_server(conductor_oss):

    recorded = json.loads(RECORDING.read_text())

    assert {path: reply[:2] for path, reply in record(conductor_oss).items()} == {
        path: recorded[path][:2] for path in PATHS
    }


def test_definitions_of_the_real_server_are_imported_and_a_second_import_changes_nothing(conductor_oss):
    done = import_conductor(conductor_oss)
    again = import_conductor(conductor_oss)

    assert (TaskDefinition.objects.count(), WorkflowDefinition.objects.count()) == (2, 5)
    assert done.report["counts"] == {"created": 12, "skipped": 1}
    assert again.report["counts"] == {"skipped": 1, "unchanged": 12}
