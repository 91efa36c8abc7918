"""Tables of a comparison in Markdown: `python -m qa.bench.report FILE [PAGE ...]`.

It prints them from a file of results, and writes them into pages: the results, their details, or the headline.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from .conductor_oss import CONDUCTOR_OSS
from .measurements import LABELS
from .samples import Sample, Span, format_ratio

Samples = dict[tuple[str, str], list[Sample]]
"""Samples by workload and server, in the order of the rounds."""
Figure = Callable[[Sample], float]
HEADLINE = ("chain", "sdk", "starts", "deep_queue_16")
"""The workloads of the headline."""
GOALS: tuple[tuple[str, str, Figure, int], ...] = (
    ("chain of 5, tasks/s", "chain", lambda sample: sample.rate, 0),
    ("chain of 5, CPU ms of a task with its database", "chain", lambda sample: sample.cpu_ms_per_task, 2),
    ("chain of 5, workers of the Python SDK, tasks/s", "sdk", lambda sample: sample.rate, 0),
    ("starts/s", "starts", lambda sample: sample.rate, 0),
    ("out of a deep queue, tasks/s", "deep_queue_16", lambda sample: sample.rate, 0),
    ("SQLite, 20 clients: slowest of 2,000 starts, ms", "sqlite_starts", lambda sample: sample.latency_ms[2], 0),
    ("SQLite, 20 clients: refused starts", "sqlite_starts", lambda sample: sum(sample.errors.values()), 0),
    ("SQLite, chain of 5, tasks/s", "sqlite_chain", lambda sample: sample.rate, 0),
)
"""Label, workload, figure and its digits for each row of the summary."""
IS_LATENCY = ("dispatch", "waiting")
"""Beginnings of the names of workloads whose rate is no result."""


class Report:
    """The results of a comparison. Ratios relate other servers to the first one, round by round."""

    def __init__(self, results: dict[str, Any]) -> None:
        self.results, self.facts, self.servers = results, results["facts"], results["facts"]["servers"]
        self.samples: Samples = defaultdict(list)
        for values in results["samples"]:
            self.samples[values["workload"], values["server"]].append(Sample(**values))
        self.first = self.servers[0] if self.servers else ""

    def render(self) -> str:
        return f"{self.render_results()}\n{self.render_details()}"

    def render_results(self) -> str:
        missing = "\n".join(f"Not measured: {name}. {reason}" for name, reason in self.results["missing"].items())
        return join_sections(self.facts_line(), self.summary(), self.engines(), missing)

    def render_details(self) -> str:
        speed = self.speed(self.names(has_rate=True), self.servers)
        return join_sections(self.facts_line(), speed, self.latency(), self.cost(), self.parts(), self.database())

    def facts_line(self) -> str:
        facts = self.facts
        base = f" (base: {facts['base']})" if facts["base"] else ""
        rounds = len({each["round"] for each in self.results["samples"]})
        workers = " and ".join(map(str, facts["web_workers"]))
        peer = f" {facts['conductor_oss']}." if facts["conductor_oss"] else ""
        return (
            f"Measured {facts['date']} at commit {facts['commit']}{base} on {facts['machine']}; "
            f"Python {facts['python']}; {rounds} rounds of {facts['seconds']:g} s: median (lowest … highest); "
            f"{workers} web processes; {facts['connections']} connections that work; "
            f"{facts['warm_up']:g} s of load before.{peer} PostgreSQL: {facts['postgresql']}."
        )

    def summary(self) -> str:
        """Return the figures that the project improves."""
        rows = [self.row(*goal, self.servers) for goal in GOALS if self.samples[goal[1], self.first]]
        if not rows:
            return ""
        no_ratios = [""] * (len(self.servers) - 1)
        relative = [
            self.ratios(self.samples["chain", server], self.samples["chain_polled", server], cpu_ratio)
            for server in self.servers
        ]
        if any(relative):
            label = "chain of 5, CPU of a task by update-v2, relative to poll and report"
            rows.append([label, *(Span(ratios).format(2) for ratios in relative), *no_ratios])
        limits = self.results["limits"]
        shares = [
            100 * sample.rate / limit for sample, limit in zip(self.samples["chain", self.first], limits, strict=False)
        ]
        if shares:
            limit = f"{Span(limits).format()} claims and completions/s of one row in plain SQL"
            rows.append([f"chain of 5, % of its database: {limit}", Span(shares).format(), *no_ratios, *no_ratios])
        return table(["summary", *self.servers, *self.ratio_heads(self.servers)], rows)

    def headline(self) -> str:
        """Return how the rates of this server and of conductor-oss were measured, and the rates."""
        servers = [server for server in self.servers if server in (self.first, CONDUCTOR_OSS)]
        rounds = len({each["round"] for each in self.results["samples"]})
        peer = f"{self.facts['conductor_oss']}, " if self.facts["conductor_oss"] else ""
        method = (
            f"Clients, servers and their PostgreSQL on one machine ({self.facts['machine']}); {peer}{rounds} rounds: "
            "median (lowest … highest).\n"
            "A ratio is the median of the ratios of the rounds, not the quotient of the medians. "
            f"Reproduce: `make bench ONLY=targets PEERS={CONDUCTOR_OSS}`."
        )
        return f"{method}\n\n{self.speed([name for name in self.names() if name in HEADLINE], servers, ratio_digits=1)}"

    def speed(self, names: list[str], servers: list[str], ratio_digits: int = 2) -> str:
        rows = []
        for name in names:
            unit = "starts/s" if name.endswith("starts") else "tasks/s"
            label = f"{LABELS[name]}, {unit}"
            rows.append(self.row(label, name, lambda sample: sample.rate, 0, servers, ratio_digits))
        return table(["workload", *servers, *self.ratio_heads(servers)], rows)

    def row(
        self, label: str, name: str, figure: Figure, digits: int, servers: list[str], ratio_digits: int = 2
    ) -> list[str]:
        """Return a figure of a workload for each server, and the ratios of the first one to the others."""
        measured = [self.samples[name, server] for server in servers]
        cells = [
            span(each, figure, digits) + ("" if all(sample.is_complete for sample in each) else " †")
            for each in measured
        ]
        ratios = [
            self.ratios(measured[0], other, lambda mine, its: figure(mine) / figure(its)) for other in measured[1:]
        ]
        return [label, *cells, *(format_ratio(each, ratio_digits) for each in ratios)]

    @staticmethod
    def ratio_heads(servers: list[str]) -> list[str]:
        return [f"ratio to {server}" for server in servers[1:]]

    def latency(self) -> str:
        """Return latencies: of dispatches, of starts without workers, or of reports."""
        rows = []
        for name in self.names():
            for server in self.servers:
                if measured := self.samples[name, server]:
                    timed = [each for each in measured if each.latency_ms]
                    spans = [span(timed, partial(latency_at, place), 1) for place in range(3)]
                    share = span(measured, lambda each: 100 * each.server_cpu / each.seconds, 0)
                    failed = sum(sum(each.errors.values()) for each in measured)
                    errors = ", ".join(sorted({error for each in measured for error in each.errors}))
                    rows.append(
                        [
                            LABELS[name],
                            measured[0].latency_of,
                            server,
                            *spans,
                            share,
                            f"{failed} ({errors})" if failed else "0",
                        ]
                    )
        head = ["latency, ms", "of a", "", "p50", "p99", "slowest", "CPU of the server, % of a core", "failed requests"]
        return table(head, rows)

    def cost(self) -> str:
        """Return CPU seconds per 1,000 tasks and the peak memory."""
        rows = []
        for name in self.names(has_rate=True):
            for server in self.servers:
                measured = self.samples[name, server]
                if not measured:
                    continue
                ratios = self.ratios(measured, self.samples[name, self.first], cpu_ratio)
                rows.append(
                    [
                        LABELS[name],
                        server,
                        span(measured, lambda each: each.cpu_ms_per_task - each.database_cpu_ms_per_task, 2),
                        span(measured, lambda each: each.database_cpu_ms_per_task, 2),
                        "" if server == self.first else format_ratio(ratios),
                        span(measured, lambda each: each.peak_mb["server"], 0),
                        span(measured, lambda each: each.peak_mb["database"], 0),
                        span(measured, lambda each: 100 * each.client_cpu / each.seconds, 0),
                    ]
                )
        head = [
            "CPU seconds per 1,000 tasks, and memory", "", "server", "database", f"both, relative to {self.first}",
            "server MB (PSS)", "database MB (PSS)", "client, % of a core",
        ]  # fmt: skip
        return table(head, rows)

    def parts(self) -> str:
        """Return where the CPU time of the first server goes."""
        names = [name for name in self.names(has_rate=True) if self.samples[name, self.first]]
        parts = list(
            dict.fromkeys(part for name in names for each in self.samples[name, self.first] for part in each.cpu)
        )
        rows = []
        for name in names:
            measured = self.samples[name, self.first]
            shares = [
                median(100 * each.cpu.get(part, 0.0) / (sum(each.cpu.values()) or 1) for each in measured)
                for part in parts
            ]
            total = span(measured, lambda each: each.cpu_ms_per_task, 2)
            rows.append([LABELS[name], total, *(f"{share:.0f} %" for share in shares)])
        return table([f"CPU of {self.first}", "ms per task", *parts], rows) if parts else ""

    def database(self) -> str:
        """Return what the database executed and wrote for a task."""
        figures: dict[str, Figure] = {
            "statements": lambda each: each.counts["statements"],
            "commits": lambda each: each.counts["commits"],
            "fsyncs": lambda each: each.counts["fsyncs"],
            "WAL KB": lambda each: each.counts["wal_bytes"] / 1000,
            "without page images": lambda each: (each.counts["wal_bytes"] - each.counts["page_image_bytes"]) / 1000,
            "index entries": lambda each: each.counts["index_entries"],
            "rows inserted": lambda each: each.counts["inserted"],
            "updated": lambda each: each.counts["updated"],
            "of these HOT": lambda each: each.counts["updated_hot"],
            "deleted": lambda each: each.counts["deleted"],
        }
        rows = [
            [f"{LABELS[name]}, {server}", *(f"{per_task(measured, figure):.2f}" for figure in figures.values())]
            for name in self.names(has_rate=True)
            for server in self.servers
            if (measured := [each for each in self.samples[name, server] if each.counts])
        ]
        return table(["database, per task", *figures], rows)

    def engines(self) -> str:
        engines = self.results["engines"]
        if not engines:
            return ""
        rows = []
        for server in self.servers:
            if measured := self.samples["chain", server]:
                server_cpu = span(measured, lambda each: each.cpu_ms_per_task - each.database_cpu_ms_per_task, 2)
                database = span(measured, lambda each: each.database_cpu_ms_per_task, 2)
                rows.append([server, span(measured, lambda each: each.rate, 0), server_cpu, database])
        for label, results in engines.items():
            cpu, database = (
                Span([1000 * each[name] / each["steps"] for each in results]).format(2)
                for name in ("cpu", "database_cpu")
            )
            database = database if any(each["database_cpu"] for each in results) else "part of the engine"
            rows.append([label, Span([each["rate"] for each in results]).format(), cpu, database])
        return table(["chain of 5", "steps/s", "CPU s per 1,000 steps: engine", "database or broker"], rows)

    def names(self, *, has_rate: bool = False) -> list[str]:
        """Return the workloads that were measured, in the order of their labels."""
        measured = {name for (name, _), values in self.samples.items() if values}
        return [name for name in LABELS if name in measured and not (has_rate and name.startswith(IS_LATENCY))]

    @staticmethod
    def ratios(ours: list[Sample], theirs: list[Sample], divide: Callable[[Sample, Sample], float]) -> list[float]:
        """Return the ratios of the rounds in which both were measured."""
        by_round = {sample.round: sample for sample in theirs}
        pairs = [(mine, by_round[mine.round]) for mine in ours if mine.round in by_round]
        found = []
        for mine, its in pairs:
            try:
                found.append(divide(mine, its))
            except ZeroDivisionError:
                continue
        return found


def join_sections(*sections: str) -> str:
    return "\n\n".join(filter(None, sections)) + "\n"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    rows, head = list(rows), list(head)
    if not rows:
        return ""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cpu_ratio(mine: Sample, its: Sample) -> float:
    return mine.cpu_ms_per_task / its.cpu_ms_per_task


def latency_at(place: int, sample: Sample) -> float:
    return sample.latency_ms[place]


def span(samples: list[Sample], figure: Figure, digits: int) -> str:
    return Span([figure(sample) for sample in samples]).format(digits)


def per_task(samples: list[Sample], figure: Figure) -> float:
    return median(figure(sample) / max(sample.tasks, 1) for sample in samples)


def render(results: dict[str, Any]) -> str:
    """Return all tables of a comparison."""
    return Report(results).render()


def write_page(page: Path, results: dict[str, Any]) -> None:
    """Replace what stands between two markers of a page: `results` and `details` have several tables, `headline` one.

    Raises:
        SystemExit: the page has no markers.
    """
    report, text = Report(results), page.read_text()
    blocks = {
        "results": report.render_results(), "details": report.render_details(), "headline": report.headline(),
    }  # fmt: skip
    for name, tables in blocks.items():
        before, begin, rest = text.partition(f"<!-- {name} -->")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        if end:
            page.write_text(f"{before}{begin}\n{tables.strip()}\n{end}{after}")
            return
    sys.exit(f"{page} does not have the lines <!-- results --> and <!-- /results -->.")


def main() -> None:
    file, *pages = map(Path, sys.argv[1:])
    results = json.loads(file.read_text())
    print(render(results))
    for page in pages:
        write_page(page, results)


if __name__ == "__main__":
    main()
