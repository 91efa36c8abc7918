"""Arithmetic and tables of the comparison."""

import pytest

from qa.bench.comparison import BASE, CONDUCTOR_OSS, THIS
from qa.bench.connections import join_chunks
from qa.bench.database import COUNTERS, WAL_RECORDS
from qa.bench.report import Report, render, write_page
from qa.bench.samples import Sample, Span, format_ratio, percentile

FACTS = {
    "date": "2026-01-01 00:00 UTC", "commit": "abc", "machine": "2 cores", "python": "3.11", "postgresql": "defaults",
    "web_workers": [2], "seconds": 8.0, "warm_up": 60.0, "connections": 16, "base": "", "conductor_oss": "",
    "servers": [],
}  # fmt: skip


def sample(server: str, number: int, rate: float, workload: str = "chain", **values) -> Sample:
    cpu = {"web": 2.0, "Redis": 0.5, "PostgreSQL": 1.0}
    counts = dict.fromkeys((*COUNTERS, *WAL_RECORDS, "wal_bytes", "page_image_bytes"), 1000.0)
    return Sample(
        workload, server, number, rate, 1000, 10.0, cpu=cpu, peak_mb={"server": 300.0, "database": 100.0},
        latency_ms=[4.0, 9.0, 12.0], counts=counts, **values,
    )  # fmt: skip


def results(*samples: Sample, **values) -> dict:
    facts = FACTS | {"servers": list(dict.fromkeys(each.server for each in samples))}
    empty = {"facts": facts, "limits": [], "engines": {}, "missing": {}}
    return empty | {"samples": [vars(each) for each in samples]} | values


def test_a_ratio_whose_range_includes_one_is_no_result():
    assert format_ratio([0.9, 1.2, 1.5]) == "no result (1.20 (0.90 … 1.50))"
    assert format_ratio([1.1, 1.2, 1.5]) == "**1.20 (1.10 … 1.50)**"


def test_a_span_has_the_median_and_the_range():
    assert Span([30.0, 10.0, 20.0]).format() == "20 (10 … 30)"
    assert Span([10.0]).format(1) == "10.0"


@pytest.mark.parametrize(("share", "value"), [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0)])
def test_a_percentile_is_a_measured_value(share, value):
    assert percentile([float(number) for number in range(1, 101)], share) == value


def test_a_ratio_divides_the_rates_of_the_same_round():
    measured = results(
        sample(THIS, 1, 300.0), sample(THIS, 2, 100.0), sample(CONDUCTOR_OSS, 2, 50.0), sample(CONDUCTOR_OSS, 1, 100.0)
    )

    assert "| chain of 5, tasks/s | 200 (100 … 300) | 75 (50 … 100) | **2.50 (2.00 … 3.00)** |" in render(measured)


def test_the_cpu_time_of_the_database_is_not_that_of_the_server():
    table = render(results(sample(THIS, 1, 300.0)))

    assert "| chain of 5 | this server | 2.50 | 1.00 |  | 300 | 100 |" in table
    assert "| chain of 5 | 3.50 | 57 % | 14 % | 29 % |" in table


def test_a_fan_out_that_reached_the_time_limit_is_marked():
    measured = results(sample(THIS, 1, 20.0, "fan_out_wide"), sample(CONDUCTOR_OSS, 1, 2.0, "fan_out_wide"))
    measured["samples"][1]["is_complete"] = False

    assert "| 20 | 2 † |" in render(measured)


def test_the_report_says_why_a_peer_is_missing():
    assert "Not measured: conductor-oss. No JDK." in render(results(missing={CONDUCTOR_OSS: "No JDK."}))


def test_a_base_has_a_column_of_its_own():
    measured = results(sample(THIS, 1, 300.0), sample(BASE, 1, 200.0), sample(CONDUCTOR_OSS, 1, 100.0))

    assert "| chain of 5, tasks/s | 300 | 200 | 100 | 1.50, one round | 3.00, one round |" in render(measured)


@pytest.mark.parametrize("name", ["results", "details", "headline"])
def test_tables_replace_those_of_a_page(tmp_path, name):
    page = tmp_path / "page.md"
    page.write_text(f"Before\n<!-- {name} -->\nold\n<!-- /{name} -->\nAfter\n")

    write_page(page, results(sample(THIS, 1, 300.0), sample(CONDUCTOR_OSS, 1, 100.0)))

    assert page.read_text().startswith(f"Before\n<!-- {name} -->\n")
    assert page.read_text().endswith(f"\n<!-- /{name} -->\nAfter\n")
    assert "| chain of 5" in page.read_text()
    assert "old" not in page.read_text()


def test_a_headline_states_its_rounds_and_command_and_has_ratios_with_one_decimal():
    servers = (THIS, 300.0, 200.0), (CONDUCTOR_OSS, 100.0, 80.0)
    measured = results(*(sample(name, n + 1, rate) for name, *rates in servers for n, rate in enumerate(rates)))

    headline = Report(measured).headline()

    assert "2 rounds" in headline
    assert "`make bench ONLY=targets PEERS=conductor-oss`" in headline
    assert "| **2.8 (2.5 … 3.0)** |" in headline


def test_a_chunked_body_is_joined():
    assert join_chunks(b"4\r\n[{}]\r\n2\r\n\r\n\r\n0\r\n\r\n") == b"[{}]\r\n"
