"""The queries of dashboards and alerts, read with a parser of PromQL."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser
import yaml

FOLDER = Path(__file__).parents[2] / "deploy" / "monitoring"
VARIABLES = {"$__rate_interval": "5m", "$__range": "1h"}
"""Variables that Grafana itself replaces by periods."""


@dataclass(frozen=True)
class UsedMetric:
    """A metric in a query, with its conditions: label, operator and value."""

    name: str
    conditions: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Query:
    """A query, and where it is."""

    place: str
    text: str

    def parse(self) -> Any:
        """Return the expression.

        Raises:
            ValueError: when it is not valid.
        """
        text = self.text
        for name, value in VARIABLES.items():
            text = text.replace(name, value)
        return promql_parser.parse(text)

    def used_metrics(self) -> list[UsedMetric]:
        """Return the metrics of the query."""
        found: list[UsedMetric] = []

        def collect(node: Any) -> None:
            if isinstance(node, promql_parser.VectorSelector):
                conditions = tuple((each.name, str(each.op), each.value) for each in node.matchers.matchers)
                found.append(UsedMetric(node.name, conditions))

        promql_parser.walk(self.parse(), collect)
        return found

    def grouping_labels(self) -> set[str]:
        """Return the labels by which the query groups."""
        found: set[str] = set()

        def collect(node: Any) -> None:
            if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
                found.update(node.modifier.labels)

        promql_parser.walk(self.parse(), collect)
        return found


def read_dashboards() -> dict[str, dict[str, Any]]:
    """Return the dashboards by the names of their files."""
    return {path.name: json.loads(path.read_text()) for path in sorted((FOLDER / "dashboards").glob("*.json"))}


def read_rules() -> list[dict[str, Any]]:
    """Return the alert rules."""
    groups = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def all_queries() -> list[Query]:
    """Return the queries of all dashboards and alerts."""
    return [*_dashboard_queries(), *(Query(rule["alert"], rule["expr"]) for rule in read_rules())]


def _dashboard_queries() -> Iterator[Query]:
    for name, dashboard in read_dashboards().items():
        for panel in dashboard["panels"]:
            for target in panel.get("targets", ()):
                yield Query(f"{name}: {panel['title']}", target["expr"])
