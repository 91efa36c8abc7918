"""Compare numbers of web processes: `make bench WEB_WORKERS=2,4,8`.

Each round starts a server with a fresh database for each number, and runs the chain of five. Tasks per CPU second say
whether further processes cost more than the work that they do. ROUNDS (3), DURATION (8), JSON=FILE and BENCH_LOCK=FILE
may be set.
"""

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.bench.servers import ROOT

from .comparison import announce, describe_commit, describe_machine, interrupt_once
from .machine_lock import MachineLock
from .measurements import CHAIN, Options, register
from .report import table
from .samples import Sample, Span
from .systems import THIS, start_this_server

WARM_UP_SECONDS = 3.0
WORKERS = {THIS: 32}
"""The number of connections that poll."""


def main() -> None:
    """Measure and print a table, after an interruption as well."""
    counts = [int(word) for word in os.environ["WEB_WORKERS"].split(",") if word]
    rounds, seconds = int(os.environ.get("ROUNDS", "3")), float(os.environ.get("DURATION", "8"))
    interrupt_once()
    lock = MachineLock.of_environment()
    samples: dict[int, list[Sample]] = {count: [] for count in counts}
    try:
        for number in range(1, rounds + 1):
            for count in counts if number % 2 else counts[::-1]:
                sample = measure_chain(count, seconds, lock)
                samples[count].append(sample)
                lock.release()
                announce(f"Round {number}: {count} web processes: {sample.rate:.0f} tasks/s")
    except KeyboardInterrupt:
        announce("Interrupted. All processes are stopped; the table has what was measured before.")
    if path := os.environ.get("JSON"):
        stored = {str(count): [asdict(sample) for sample in measured] for count, measured in samples.items()}
        Path(path).write_text(json.dumps({"commit": describe_commit(ROOT), "samples": stored}, indent=1) + "\n")
    print(f"Commit {describe_commit(ROOT)} on {describe_machine()}; {rounds} rounds of {seconds:g} s.\n")
    print(render(samples))


def measure_chain(web_workers: int, seconds: float, lock: MachineLock) -> Sample:
    """Start a server, warm it up and measure the chain of five."""
    with tempfile.TemporaryDirectory(prefix="conductor-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        with start_this_server(folder / "this", web_workers) as system, lock.hold():
            register(system, [CHAIN])
            CHAIN.measure(CHAIN, system, Options(WARM_UP_SECONDS, WORKERS))
            [sample] = CHAIN.measure(CHAIN, system, Options(seconds, WORKERS))
    return sample


def render(samples: dict[int, list[Sample]]) -> str:
    """Return the table. The last column compares with the first number of processes, round by round."""
    first = next(iter(samples.values()))
    rows = []
    for count, measured in samples.items():
        if not measured:
            continue
        losses = [1 - _efficiency(mine) / _efficiency(other) for mine, other in zip(measured, first, strict=False)]
        change = Span([-100 * loss for loss in losses]).format(1) if losses and measured is not first else "–"
        rows.append(
            [
                str(count),
                Span([each.rate for each in measured]).format(),
                Span([each.tasks / each.server_cpu for each in measured]).format(),
                Span([_efficiency(each) for each in measured]).format(),
                change,
                Span([each.peak_mb["server"] for each in measured]).format(),
            ]
        )
    head = [
        "web processes", "tasks/s", "tasks per CPU second of server and Redis", "with the database", "change, %",
        "peak memory MB (PSS)",
    ]  # fmt: skip
    return table(head, rows)


def _efficiency(sample: Sample) -> float:
    return sample.tasks / (sample.server_cpu + sample.database_cpu)
