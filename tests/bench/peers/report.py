"""Tables of a comparison in Markdown: `python -m tests.bench.peers.report FILE [PAGE]`.

It prints them from a file of results, and writes them into a page.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

from .measurements import LABELS, WIDTH
from .samples import Sample, Span, format_ratio
from .systems import BASE, CONDUCTOR_OSS, THIS

Samples = dict[tuple[str, str], list[Sample]]
"""Samples by workload and server, in the order of the rounds."""
BEGIN, END = "<!-- results -->", "<!-- /results -->"
DISPATCH = ("dispatch", "dispatch_idle")


def render(results: dict[str, Any]) -> str:
    """Return all tables of a comparison."""
    samples: Samples = defaultdict(list)
    for values in results["samples"]:
        samples[values["workload"], values["system"]].append(Sample(**values))
    sections = [
        render_facts(results["facts"]),
        render_speed(samples),
        render_limit(samples, results["limits"]),
        render_cost(samples),
        render_parts(samples),
        render_writes(samples),
        render_engines(results, samples),
        "\n".join(f"Not measured: {name}. {reason}" for name, reason in results["missing"].items()),
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    rows, head = list(rows), list(head)
    if not rows:
        return ""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def render_facts(facts: dict[str, Any]) -> str:
    workers = ", ".join(f"{count} for {name}" for name, count in facts["workers"].items())
    base = f" (base: {facts['base']})" if facts["base"] else ""
    return (
        f"Measured {facts['date']} at commit {facts['commit']}{base} on {facts['machine']}; Python {facts['python']}; "
        f"{facts['rounds']} rounds of {facts['seconds']:g} s; {facts['web_workers']} web processes; connections that "
        f"poll: {workers}; {facts['warm_up']:g} s of load before. PostgreSQL: {facts['postgresql']}."
    )


def render_speed(samples: Samples) -> str:
    systems = _systems(samples)
    rows = []
    for name in _names(samples):
        measured = [samples[name, system] for system in systems]
        if name in DISPATCH:
            for place, share in ((0, "p50"), (1, "p99")):
                pick = _latency(place)
                ratios = [_latency_ratios(measured[0], other, pick) for other in measured[1:]]
                rows.append([f"{LABELS[name]}, {share}, ms", *(_span(each, pick, 1) for each in measured), *ratios])
        else:
            ratios = [_ratios(measured[0], other, lambda mine, its: mine.rate / its.rate) for other in measured[1:]]
            unit = "starts/s" if name == "starts" else "tasks/s"
            rows.append([f"{LABELS[name]}, {unit}", *map(_rates, measured), *ratios])
    rows += _width_rows(samples, systems)
    return table(["workload", *systems, *(f"ratio to {system}" for system in systems[1:])], rows)


def _systems(samples: Samples) -> list[str]:
    """Return the servers that were measured, this one first."""
    measured = {system for (_, system), values in samples.items() if values}
    return [system for system in (THIS, BASE, CONDUCTOR_OSS) if system in measured]


def _names(samples: Samples) -> list[str]:
    return [name for name in LABELS if samples[name, THIS]]


def _rates(samples: list[Sample]) -> str:
    text = _span(samples, lambda sample: sample.rate, 0)
    if samples and not all(sample.is_complete for sample in samples):
        text += " †"
    return text


def _latency(place: int) -> Callable[[Sample], float]:
    return lambda sample: sample.latency_ms[place]


def _latency_ratios(ours: list[Sample], theirs: list[Sample], pick: Callable[[Sample], float]) -> str:
    return _ratios(ours, theirs, lambda mine, its: pick(its) / pick(mine))


def _span(samples: list[Sample], pick: Callable[[Sample], float], digits: int) -> str:
    return Span([pick(sample) for sample in samples]).format(digits)


def _ratios(ours: list[Sample], theirs: list[Sample], divide: Callable[[Sample, Sample], float]) -> str:
    by_round = {sample.round: sample for sample in theirs}
    pairs = [(mine, by_round[mine.round]) for mine in ours if mine.round in by_round]
    return format_ratio([divide(mine, other) for mine, other in pairs if mine.rate and other.rate])


def _width_rows(samples: Samples, systems: list[str]) -> list[list[str]]:
    """Return the row of the time per task of a wide fan-out, relative to that of a narrow one."""
    columns = []
    for system in systems:
        narrow = {sample.round: sample.rate for sample in samples["fan_out", system]}
        wide = [each for each in samples["fan_out_wide", system] if each.round in narrow and each.rate]
        columns.append(Span([narrow[each.round] / each.rate for each in wide]).format(2))
    ratios = [""] * (len(systems) - 1)
    return [[f"time per task: {WIDTH:,} relative to 50", *columns, *ratios]] if any(map(_has_value, columns)) else []


def _has_value(cell: str) -> bool:
    return cell != "–"


def render_limit(samples: Samples, limits: list[float]) -> str:
    shares = [100 * sample.rate / limit for sample, limit in zip(samples["chain", THIS], limits, strict=False)]
    if not limits:
        return ""
    share = f" The chain of 5 reaches {Span(shares).format(1)} % of it." if shares else ""
    return f"Limit of this server's database: {Span(limits).format()} claim-and-complete steps/s of plain SQL.{share}"


def render_cost(samples: Samples) -> str:
    """Return CPU seconds per 1,000 tasks and the peak memory."""
    systems = _systems(samples)
    rows = []
    for name in _loads(samples):
        mine = samples[name, THIS]
        for system in systems:
            measured = samples[name, system]
            rows.append(
                [
                    LABELS[name],
                    system,
                    _span(measured, lambda sample: sample.cpu_ms_per_task()[0], 2),
                    _span(measured, lambda sample: sample.cpu_ms_per_task()[1], 2),
                    "" if system == THIS else _ratios(mine, measured, lambda one, other: _cpu(other) / _cpu(one)),
                    _span(measured, lambda sample: sample.peak_mb["server"], 0),
                    _span(measured, lambda sample: sample.peak_mb["database"], 0),
                    _span(measured, lambda sample: 100 * sample.client_cpu / sample.seconds, 0),
                ]
            )
    head = [
        "CPU seconds per 1,000 tasks, and memory", "", "server", "database", f"both, relative to {THIS}",
        "server MB (PSS)", "database MB (PSS)", "client, % of a core",
    ]  # fmt: skip
    return table(head, rows)


def _loads(samples: Samples) -> list[str]:
    return [name for name in _names(samples) if name not in DISPATCH]


def _cpu(sample: Sample) -> float:
    return sum(sample.cpu_ms_per_task())


def render_parts(samples: Samples) -> str:
    """Return where the CPU time of this server goes."""
    names = _loads(samples)
    parts = next((list(sample.cpu) for name in names for sample in samples[name, THIS]), [])
    rows = []
    for name in names:
        shares = []
        for part in parts:
            values = [100 * each.cpu[part] / (sum(each.cpu.values()) or 1) for each in samples[name, THIS]]
            shares.append(f"{median(values):.0f} %")
        total = _span(samples[name, THIS], _cpu, 2)
        rows.append([LABELS[name], total, *shares])
    return table(["CPU of this server", "ms per task", *parts], rows)


def render_writes(samples: Samples) -> str:
    rows = []
    for name in _loads(samples):
        for system in _systems(samples):
            measured = samples[name, system]
            rows.append(
                [
                    f"{LABELS[name]}, {system}",
                    _per_task(measured, lambda sample: sample.wal_bytes / 1000),
                    _per_task(measured, lambda sample: (sample.wal_bytes - sample.page_image_bytes) / 1000),
                    _per_task(measured, lambda sample: sample.index_entries or 0.0),
                    _per_task(measured, lambda sample: sample.rows["inserted"]),
                    _per_task(measured, lambda sample: sample.rows["updated"]),
                    _per_task(measured, lambda sample: sample.rows["updated_hot"]),
                    _per_task(measured, lambda sample: sample.rows["deleted"]),
                ]
            )
    head = [
        "writes per task", "WAL KB", "without page images", "index entries", "rows inserted", "updated", "of these HOT",
        "deleted",
    ]  # fmt: skip
    return table(head, rows)


def _per_task(samples: list[Sample], pick: Callable[[Sample], float]) -> str:
    return f"{median(pick(sample) / max(sample.tasks, 1) for sample in samples):.2f}" if samples else "–"


def render_engines(results: dict[str, Any], samples: Samples) -> str:
    rows = []
    for system in _systems(samples):
        if measured := samples["chain", system]:
            cpu, database = (
                _span(measured, lambda sample, place=place: sample.cpu_ms_per_task()[place], 2) for place in (0, 1)
            )
            rows.append([system, _rates(measured), cpu, database])
    for label, measured in results["engines"].items():
        rates = Span([each["rate"] for each in measured]).format()
        cpu = Span([1000 * each["cpu"] / each["steps"] for each in measured]).format(2)
        database = Span([1000 * each["database_cpu"] / each["steps"] for each in measured]).format(2)
        rows.append([label, rates, cpu, database])
    if not results["engines"]:
        return ""
    head = ["chain of 5", "steps/s", "CPU s per 1,000 steps: engine", "database or broker"]
    return table(head, rows)


def write_page(page: Path, tables: str) -> None:
    """Replace the tables of a page: the text between its two markers."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        sys.exit(f"{page} does not have the lines {BEGIN} and {END}.")
    page.write_text(f"{before}{begin}\n{tables.strip()}\n{end}{after}")


def main() -> None:
    file, *pages = map(Path, sys.argv[1:])
    tables = render(json.loads(file.read_text()))
    print(tables)
    for page in pages:
        write_page(page, tables)


if __name__ == "__main__":
    main()
