"""docs/reference/metrics.md: the page has each exported metric, and is current."""

import re

from conductor_app.core.decide import EVENTS_OF_OUTCOMES
from conductor_app.core.states import RUN
from conductor_app.runs.queries.messages import RECEIVER_KINDS
from conductor_app.taskcluster.store import STANDALONE
from tests.monitoring.exported_metrics import exported_metrics
from tests.monitoring.metrics_page import NOTES, PAGE, refresh


def values_of(label: str) -> set[str]:
    """Return the words in code style of a row of the table of labels."""
    [row] = re.findall(rf"^\| `{label}` \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    return set(re.findall(r"`(\w+)`", row))


def test_the_page_is_current():
    assert refresh(PAGE.read_text()) == PAGE.read_text(), "Run `make metrics`."


def test_each_metric_has_a_unit_and_says_when_to_worry():
    assert {metric.name for metric in exported_metrics()} == set(NOTES)
    assert all(len(note) == 2 and all(note) for note in NOTES.values())


def test_each_label_of_a_metric_is_explained():
    labels = {label for metric in exported_metrics() for label in metric.labels}

    assert labels == set(re.findall(r"^\| `(\w+)` \| [^|]* \|$", PAGE.read_text(), re.MULTILINE))


def test_the_values_of_labels_are_those_of_the_code():
    assert values_of("status") == RUN.final
    assert values_of("outcome") == set(EVENTS_OF_OUTCOMES)
    assert values_of("receiver") == {*RECEIVER_KINDS.values(), "other"}
    assert STANDALONE in values_of("type")
