"""Tables of a comparison in Markdown: `python -m tests.bench.peers.report FILE` prints them from a file of results."""

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

from .measurements import LABELS, WIDTH
from .samples import Sample, Span, format_ratio
from .systems import CONDUCTOR_OSS, THIS

Samples = dict[tuple[str, str], list[Sample]]
"""Samples by workload and server, in the order of the rounds."""
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
    return (
        f"Measured {facts['date']} at commit {facts['commit']} on {facts['machine']}; Python {facts['python']}; "
        f"{facts['rounds']} rounds of {facts['seconds']:g} s; {facts['web_workers']} web processes; connections that "
        f"poll: {workers}; {facts['warm_up']:g} s of load before. PostgreSQL: {facts['postgresql']}."
    )


def render_speed(samples: Samples) -> str:
    rows = []
    for name in _names(samples):
        ours, theirs = samples[name, THIS], samples[name, CONDUCTOR_OSS]
        if name in DISPATCH:
            for place, share in ((0, "p50"), (1, "p99")):
                pick = _latency(place)
                ratios = _ratios(ours, theirs, lambda mine, other, pick=pick: pick(other) / pick(mine))
                rows.append([f"{LABELS[name]}, {share}, ms", _span(ours, pick, 1), _span(theirs, pick, 1), ratios])
        else:
            ratios = _ratios(ours, theirs, lambda mine, other: mine.rate / other.rate)
            unit = "starts/s" if name == "starts" else "tasks/s"
            rows.append([f"{LABELS[name]}, {unit}", _rates(ours), _rates(theirs), ratios])
    rows += _width_rows(samples)
    return table(["workload", THIS, CONDUCTOR_OSS, "ratio (lowest … highest of the rounds)"], rows)


def _names(samples: Samples) -> list[str]:
    return [name for name in LABELS if samples[name, THIS]]


def _rates(samples: list[Sample]) -> str:
    text = _span(samples, lambda sample: sample.rate, 0)
    if samples and not all(sample.is_complete for sample in samples):
        text += " †"
    return text


def _latency(place: int) -> Callable[[Sample], float]:
    return lambda sample: sample.latency_ms[place]


def _span(samples: list[Sample], pick: Callable[[Sample], float], digits: int) -> str:
    return Span([pick(sample) for sample in samples]).format(digits)


def _ratios(ours: list[Sample], theirs: list[Sample], divide: Callable[[Sample, Sample], float]) -> str:
    by_round = {sample.round: sample for sample in theirs}
    pairs = [(mine, by_round[mine.round]) for mine in ours if mine.round in by_round]
    return format_ratio([divide(mine, other) for mine, other in pairs if mine.rate and other.rate])


def _width_rows(samples: Samples) -> list[list[str]]:
    """Return the row of the time per task of a wide fan-out, relative to that of a narrow one."""
    columns = []
    for system in (THIS, CONDUCTOR_OSS):
        narrow = {sample.round: sample.rate for sample in samples["fan_out", system]}
        wide = [each for each in samples["fan_out_wide", system] if each.round in narrow and each.rate]
        columns.append(Span([narrow[each.round] / each.rate for each in wide]).format(2))
    return [[f"time per task: fan-out of {WIDTH:,} relative to 50", *columns, ""]] if columns[0] != "–" else []


def render_limit(samples: Samples, limits: list[float]) -> str:
    shares = [100 * sample.rate / limit for sample, limit in zip(samples["chain", THIS], limits, strict=False)]
    if not limits:
        return ""
    share = f" The chain of 5 reaches {Span(shares).format(1)} % of it." if shares else ""
    return f"Limit of this server's database: {Span(limits).format()} claim-and-complete steps/s of plain SQL.{share}"


def render_cost(samples: Samples) -> str:
    """Return CPU seconds per 1,000 tasks, the peak memory and the share of the client in all CPU time."""
    rows = []
    for name in _names(samples):
        if name in DISPATCH:
            continue
        cells = [LABELS[name]]
        for system in (THIS, CONDUCTOR_OSS):
            measured = samples[name, system]
            cells.append(_span(measured, lambda sample: sample.cpu_ms_per_task()[0], 2))
            cells.append(_span(measured, lambda sample: sample.cpu_ms_per_task()[1], 2))
            cells.append(_span(measured, lambda sample: sample.peak_mb["server"], 0))
        ratios = _ratios(
            samples[name, THIS], samples[name, CONDUCTOR_OSS], lambda mine, other: _cpu(other) / _cpu(mine)
        )
        cells.append(ratios)
        cells.append(_span(samples[name, THIS], lambda sample: 100 * sample.client_cpu / sample.seconds, 0))
        rows.append(cells)
    head = [
        "workload",
        *(
            f"{system}: {text}"
            for system in (THIS, CONDUCTOR_OSS)
            for text in ("server CPU s per 1,000 tasks", "database CPU s", "peak memory MB (PSS)")
        ),
        f"CPU of {CONDUCTOR_OSS} with database / of {THIS}",
        "CPU of the client, % of a core",
    ]
    return table(head, rows)


def _cpu(sample: Sample) -> float:
    return sum(sample.cpu_ms_per_task())


def render_parts(samples: Samples) -> str:
    """Return where the CPU time of this server goes."""
    names = [name for name in _names(samples) if name not in DISPATCH]
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
    for name in _names(samples):
        for system in (THIS, CONDUCTOR_OSS):
            measured = samples[name, system]
            if name in DISPATCH or not measured:
                continue
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
    return f"{median(pick(sample) / max(sample.tasks, 1) for sample in samples):.2f}"


def render_engines(results: dict[str, Any], samples: Samples) -> str:
    rows = []
    for system in (THIS, CONDUCTOR_OSS):
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


if __name__ == "__main__":
    print(render(json.loads(Path(sys.argv[1]).read_text())))
