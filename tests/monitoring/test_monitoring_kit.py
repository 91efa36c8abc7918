"""deploy/monitoring: dashboards, alerts and the sample of a collector fit the server and their readers."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from conductor_app.core.decide import EVENTS_OF_OUTCOMES
from conductor_app.core.states import RUN
from conductor_app.monitoring.queries.health import SWEEP_INTERVALS_MS
from tests.monitoring.exported_metrics import exported_metrics
from tests.monitoring.queries import FOLDER, Query, all_queries, read_dashboards, read_rules

GUIDE = FOLDER.parents[1] / "docs" / "how-to" / "monitor.md"
METRICS_OF_PROMETHEUS = {"up": frozenset[str]()}
LABELS_OF_PROMETHEUS = frozenset({"job", "instance"})
LABEL_VALUES = {
    "status": RUN.final,
    "outcome": set(EVENTS_OF_OUTCOMES),
    "found": {"yes", "no"},
    "applied": {"yes", "no"},
}
DASHBOARDS = sorted(read_dashboards())
ALERTS = [rule["alert"] for rule in read_rules()]
QUERIES = all_queries()
PROMTOOL = shutil.which("promtool")
requires_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed. The package `prometheus` has it."
)


def known_samples() -> dict[str, frozenset[str]]:
    """Return the labels of each sample that a query can use."""
    return METRICS_OF_PROMETHEUS | {
        name: metric.sample_labels for metric in exported_metrics() for name in metric.samples
    }


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.place)
def test_a_query_uses_metrics_and_labels_that_the_server_exports(query: Query):
    samples = known_samples()
    used = query.used_metrics()

    assert used
    assert {metric.name for metric in used} <= samples.keys()
    for metric in used:
        for label, operator, value in metric.conditions:
            assert label in samples[metric.name] | LABELS_OF_PROMETHEUS
            if label in LABEL_VALUES and "$" not in value:
                assert set(value.split("|")) <= LABEL_VALUES[label], operator
    labels = frozenset.union(*(samples[metric.name] for metric in used))
    assert query.grouping_labels() <= labels | LABELS_OF_PROMETHEUS


def test_dashboards_use_every_metric():
    used = {metric.name for query in QUERIES for metric in query.used_metrics()}

    assert [metric.name for metric in exported_metrics() if not used & set(metric.samples)] == []


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_has_only_fields_of_grafanas_model(name):
    plugins.register_default_plugins()
    dashboard = read_dashboards()[name]

    read_back = json.loads(json.dumps(Dashboard.from_json(dashboard), cls=JSONEncoder))

    assert list(lost_parts(dashboard, read_back, name)) == []


def lost_parts(original: Any, read_back: Any, place: str) -> Iterator[str]:
    """Yield the places of values that the model does not have. Defaults that it adds do not count."""
    if isinstance(original, dict) and isinstance(read_back, dict):
        for key, value in original.items():
            if key in read_back:
                yield from lost_parts(value, read_back[key], f"{place}.{key}")
            else:
                yield f"{place}.{key}"
    elif isinstance(original, list) and isinstance(read_back, list) and len(original) == len(read_back):
        for index, (one, other) in enumerate(zip(original, read_back, strict=True)):
            yield from lost_parts(one, other, f"{place}[{index}]")
    elif original != read_back:
        yield place


def test_a_field_outside_of_the_model_is_noticed():
    plugins.register_default_plugins()
    dashboard = {**read_dashboards()[DASHBOARDS[0]], "colour": "red"}
    read_back = json.loads(json.dumps(Dashboard.from_json(dashboard), cls=JSONEncoder))

    assert list(lost_parts(dashboard, read_back, "")) == [".colour"]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_of_a_dashboard_have_descriptions_and_do_not_overlap(name):
    dashboard = read_dashboards()[name]
    cells: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        own = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & own, panel["title"]
        assert max(x for x, _ in own) < 24
        cells |= own
        if panel["type"] != "row":
            assert panel["description"].endswith("."), panel["title"]
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_each_dashboard_has_its_own_id_and_filters_by_job():
    dashboards = read_dashboards()

    assert len({dashboard["uid"] for dashboard in dashboards.values()}) == len(dashboards) == 5
    for query in QUERIES:
        for metric in query.used_metrics():
            assert any(label == "job" for label, *_ in metric.conditions), query.place


@pytest.mark.parametrize("rule", read_rules(), ids=ALERTS)
def test_an_alert_links_to_its_section_of_the_guide(rule):
    address, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", GUIDE.read_text(), re.MULTILINE | re.DOTALL))

    assert address == "https://docs.example.org/how-to/monitor.html"
    assert anchor == rule["alert"].lower()
    assert rule["labels"]["severity"] in ("critical", "warning")
    text = sections[rule["alert"]]
    assert [word for word in ("**Meaning.**", "**Check.**", "**Act.**") if word not in text] == []


def test_the_guide_has_no_section_without_an_alert():
    assert re.findall(r"^### (Conductor\w+)$", GUIDE.read_text(), re.MULTILINE) == ALERTS


def test_the_alert_on_stopped_sweeps_knows_the_sweeps_with_longer_intervals():
    [rule] = [rule for rule in read_rules() if rule["alert"] == "ConductorSweepsStopped"]
    [rare] = re.findall(r'sweep!~"([^"]+)"', rule["expr"])

    assert {name for name in SWEEP_INTERVALS_MS if not re.fullmatch(rare, name)} == set()
    assert not re.fullmatch(rare, "handle_due_timers")


def promtool(*arguments: str, folder: Path = FOLDER) -> str:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@requires_promtool
def test_prometheus_accepts_the_alerts_and_they_fire_as_expected():
    promtool("check", "rules", "alerts.yaml")
    promtool("test", "rules", "alerts.test.yaml")


def test_each_alert_has_a_test_that_it_is_quiet_and_one_that_it_fires():
    tests = yaml.safe_load((FOLDER / "alerts.test.yaml").read_text())["tests"]
    cases = [(case["alertname"], len(case["exp_alerts"])) for test in tests for case in test["alert_rule_test"]]

    assert cases == [(name, count) for name in ALERTS for count in (0, 1)]


@requires_promtool
def test_prometheus_accepts_the_scrape_configurations(tmp_path):
    shutil.copytree(FOLDER, tmp_path / "kit")
    (tmp_path / "kit" / "metrics-token").write_text("a token")
    collector = yaml.safe_load((FOLDER / "otel-collector.yaml").read_text())
    (tmp_path / "kit" / "collector.yaml").write_text(yaml.dump(collector["receivers"]["prometheus"]["config"]))

    for name in ("prometheus.yaml", "collector.yaml"):
        promtool("check", "config", name, folder=tmp_path / "kit")


def test_the_collector_uses_each_component_that_it_configures():
    collector = yaml.safe_load((FOLDER / "otel-collector.yaml").read_text())
    pipelines = collector["service"]["pipelines"].values()

    for kind in ("receivers", "processors", "exporters"):
        assert {name for pipeline in pipelines for name in pipeline[kind]} == set(collector[kind])
    assert collector["service"]["extensions"] == list(collector["extensions"])
    assert all(pipeline["processors"][0] == "memory_limiter" for pipeline in pipelines)
