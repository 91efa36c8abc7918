"""Layout that pages share: breadcrumbs, navigation, style sheets, diffs and the axes of charts."""

import re

import pytest
from django.template.loader import render_to_string

from conductor_app.admin.charts import ChartMarker, ChartSeries, TrendChart
from conductor_app.insight.durations import DAY, HOUR
from conductor_app.insight.time_ranges import TimeRange
from tests.admin.page_text import html

GERMAN = {"Accept-Language": "de"}
MONDAY = 1_768_176_000_000
"""Midnight in UTC."""


def breadcrumbs(page: str) -> str:
    [found] = re.findall(r'<div class="breadcrumbs">(.*?)</div>', page, re.DOTALL)
    return " ".join(re.sub("<[^>]+>", "", found).split())


@pytest.mark.parametrize(
    "path, trail",
    [
        ("auth/user/add/", "Overview › Users › new"),
        ("conductor/client/add/", "Overview › Taskcluster clients › new"),
        ("password_change/", "Overview › Password"),
        ("bulk/", "Overview › Bulk operations"),
        ("views/", "Overview › Saved views"),
        ("background-jobs/", "Overview › Background jobs"),
    ],
)
def test_breadcrumbs_begin_with_the_overview_and_name_the_entry_of_the_sidebar(operator, path, trail):
    assert breadcrumbs(html(operator.get(f"/admin/{path}"))) == trail


def test_the_sidebar_leads_to_the_alert_targets(operator):
    page = html(operator.get("/admin/alert-targets/"))

    assert re.search(r'<a href="/admin/alert-targets/" aria-current="page">.*?Alert targets', page, re.DOTALL)


def test_the_list_of_task_groups_has_the_styles_of_groups(operator):
    assert 'ops/group.css"' in html(operator.get("/admin/conductor/taskgroup/"))


def test_columns_of_fields_have_german_labels(operator):
    page = html(operator.get("/admin/conductor/auditentry/", headers=GERMAN))

    assert "<span>Aktion</span>" in page or ">Aktion</a>" in page


def test_a_line_of_a_diff_has_no_line_breaks_around_its_text():
    line = {"kind": "new", "old": None, "new": 1, "text": '"name": 1'}

    shown = render_to_string("ops/definition/hunks.html", {"hunks": [[line]]})

    assert "<td><code>&quot;name&quot;: 1</code></td>" in shown


def chart(**more) -> TrendChart:
    hours = TimeRange("7d", MONDAY + 5 * HOUR, 3 * HOUR, 56)
    return TrendChart("Failures", hours, [ChartSeries("Failed", "failed", [1] * 56)], **more)


def test_a_chart_of_a_week_labels_the_first_bar_of_each_day():
    assert [time["label"] for time in chart().times] == [f"{day} Jan" for day in range(13, 20)]
    assert [time["x"] for time in chart().times][:2] == [f"{100 * 7 / 56:.3f}%", f"{100 * 15 / 56:.3f}%"]


def test_the_label_of_a_marker_is_beside_its_line():
    drawn = render_to_string("ops/chart.html", {"chart": chart(markers=[ChartMarker(MONDAY + 4 * DAY, "v2")])})

    [line] = re.findall(r'<line x1="([\d.]+%)" x2="[\d.]+%" y1="0"', drawn)
    assert re.search(rf'<svg x="{line}" overflow="visible">\s*<text x="4" y="10" text-anchor="start">v2</text>', drawn)
