"""Layout that pages share: breadcrumbs, navigation, style sheets, diffs and the axes of charts."""

import re

import pytest
from django.template.loader import render_to_string

from conductor_app.utils.formatting import DAY, HOUR, MINUTE, TimeRange
from conductor_app.web.charts import ChartMarker, ChartSeries, ChartThreshold, TrendChart
from tests.page_text import html

MONDAY = 1_768_176_000_000
"""Midnight in UTC."""


def breadcrumbs(page: str) -> str:
    [found] = re.findall(r'<div class="breadcrumbs">(.*?)</div>', page, re.DOTALL)
    return " ".join(re.sub("<[^>]+>", "", found).split())


def test_breadcrumbs_begin_with_the_overview_and_name_the_entry_of_the_sidebar(operator):
    for path, trail in [
        ("auth/user/add/", "Overview › Users › New"),
        ("conductor/client/add/", "Overview › Taskcluster clients › New"),
        ("password_change/", "Overview › Password"),
        ("bulk/", "Overview › Bulk operations"),
        ("views/", "Overview › Runs › Saved views"),
    ]:
        assert breadcrumbs(html(operator.get(f"/admin/{path}"))) == trail, path


def test_the_sidebar_marks_the_one_entry_of_a_page(operator):
    for path, label in [
        ("alerts/", "Alerts"),
        ("alert-targets/new/slack/", "Alerts"),
        ("auth/user/add/", "Admin"),
        ("queue/?name=charge", "Queues"),
        ("webhooks/", "Events"),
        ("webhooks/new/", "Events"),
        ("event-sources/", "Events"),
        ("conductor/eventhandler/", "Events"),
        ("conductor/eventhandler/add/", "Events"),
        ("bulk/", "Runs"),
    ]:
        page = html(operator.get(f"/admin/{path}"))
        [sidebar] = re.findall(r'<nav id="nav-sidebar".*?</nav>', page, re.DOTALL)

        marked = re.findall(r'href="[^"]+" aria-current="page">(.*?)</a>', sidebar, re.DOTALL)
        assert [re.sub("<[^>]+>", "", each).strip() for each in marked] == [label], path


def test_the_list_of_task_groups_has_the_styles_of_groups(operator):
    assert 'ops/group.css"' in html(operator.get("/admin/conductor/taskgroup/"))


def test_a_line_of_a_diff_has_no_line_breaks_around_its_text():
    line = {"kind": "new", "old": None, "new": 1, "text": '"name": 1'}

    shown = render_to_string("ops/definitions/hunks.html", {"hunks": [[line]]})

    assert "<td><code>&quot;name&quot;: 1</code></td>" in shown


def chart(**more) -> TrendChart:
    hours = TimeRange("7d", MONDAY + 5 * HOUR, 3 * HOUR, 56)
    return TrendChart("Failures", hours, [ChartSeries("Failed", "failed", [1] * 56)], **more)


def test_a_chart_of_a_week_labels_the_first_bar_of_each_day():
    assert [time["label"] for time in chart().times] == [f"{day} Jan" for day in range(13, 20)]
    assert [time["x"] for time in chart().times][:2] == [f"{100 * 7 / 56:.3f}%", f"{100 * 15 / 56:.3f}%"]


@pytest.mark.parametrize(
    "name, now, labels",
    [
        ("1h", 7 * HOUR + 6 * MINUTE, ["06:10", "06:20", "06:30", "06:40", "06:50", "07:00"]),
        ("24h", 7 * HOUR + 6 * MINUTE, ["08:00", "12:00", "16:00", "20:00", "00:00", "04:00"]),
    ],
)
def test_a_chart_of_hours_labels_round_times(name, now, labels):
    drawn = TrendChart("Failures", TimeRange.aligned(name, MONDAY + now), chart().series)

    assert [time["label"] for time in drawn.times] == labels


def test_the_last_label_of_the_time_axis_is_left_out_on_narrow_screens():
    assert [time["minor"] for time in chart().times][-1] is True


@pytest.mark.parametrize("text, space", [("4", ""), ("10,000", "medium"), ("1,000,000", "broad")])
def test_the_labels_of_the_value_axis_have_space_beside_the_bars(text, space):
    highest = ChartThreshold(int(text.replace(",", "")), "Limit")
    drawn = render_to_string("ops/web/chart.html", {"chart": chart(threshold=highest)})

    assert f'<div class="plot {space}" data-plot>' in drawn
    assert f'<text class="tick" x="-8" y="16.0" dy="4">{text}</text>' in drawn


def test_a_single_series_that_the_title_names_has_no_legend():
    cost = TrendChart("Cost", chart().time_range, [ChartSeries("Cost", "started", [1] * 56)], has_totals=False)

    assert cost.legend == []
    assert [series.label for series in chart().legend] == ["Failed"]


def test_the_number_of_a_marker_is_above_its_line():
    drawn = render_to_string("ops/web/chart.html", {"chart": chart(markers=[ChartMarker(MONDAY + 4 * DAY, "v2")])})

    [line] = re.findall(r'<line x1="([\d.]+%)" x2="[\d.]+%" y1="14"', drawn)
    assert f'<text x="{line}" y="10">1</text>' in drawn
