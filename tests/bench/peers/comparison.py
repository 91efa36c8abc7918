"""Compare this server with others: `make bench PEERS=1`.

PEERS=1 measures all peers, PEERS=conductor-oss,dbos,celery,temporal some. ROUNDS (3), DURATION (8 s for a load),
WARM_UP (60 s of load for the JVM), ONLY=chain,fan_out, WEB_WORKERS (2), WORKERS=16 (connections that poll, instead of
the best number for each server), BASE=FOLDER (another checkout of this server, which is measured as well), JSON=FILE
(results) and BENCH_LOCK=FILE (a lock to hold while measuring) may be set.
"""

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from tests.bench.database_baseline import measure_baseline
from tests.bench.servers import ROOT

from .machine_lock import MachineLock
from .measurements import CHAIN, WORKLOADS, Options, Workload, register
from .other_engines import ENGINES, Engine, measure_engine, prepare_environment
from .report import render
from .samples import Sample
from .systems import (
    BASE,
    CONDUCTOR_OSS,
    THIS,
    NotAvailable,
    System,
    describe_settings,
    start_conductor_oss,
    start_this_server,
)

WORKERS = (8, 16, 32, 64)
"""The numbers of connections that poll. Each server is measured with the one that gives it the highest rate."""
WORKERS_SECONDS = 4.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
PEERS = (CONDUCTOR_OSS, *ENGINES)


@dataclass
class Comparison:
    """Options and results of one comparison."""

    rounds: int
    web_workers: int
    warm_up: float
    options: Options
    workloads: list[Workload]
    peers: list[str]
    base: Path | None
    file: Path | None
    lock: MachineLock
    facts: dict[str, Any] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)
    """Claim-and-complete steps per second that this server's database executes as plain SQL, by round."""
    engines: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Results of the engines that do not have Conductor's API, by name."""
    missing: dict[str, str] = field(default_factory=dict)
    """Peers that could not be measured, and why."""

    def save(self) -> None:
        if self.file is not None:
            self.file.write_text(json.dumps(self.as_json(), indent=1) + "\n")

    def as_json(self) -> dict[str, Any]:
        return {
            "facts": self.facts,
            "limits": self.limits,
            "samples": [asdict(sample) for sample in self.samples],
            "engines": self.engines,
            "missing": self.missing,
        }


def read_options() -> Comparison:
    """Read the options from environment variables.

    Raises:
        SystemExit: an option is invalid.
    """
    by_name = {workload.name: workload for workload in WORKLOADS}
    selected = _read_list("ONLY", list(by_name))
    peers = _read_list("PEERS", list(PEERS)) if os.environ["PEERS"] != "1" else list(PEERS)
    seconds, workers = float(os.environ.get("DURATION", "8")), int(os.environ.get("WORKERS", "0"))
    comparison = Comparison(
        rounds=int(os.environ.get("ROUNDS", "3")),
        web_workers=int(os.environ.get("WEB_WORKERS", "2")),
        warm_up=float(os.environ.get("WARM_UP", "60")),
        options=Options(seconds, dict.fromkeys((THIS, BASE, CONDUCTOR_OSS), workers) if workers else {}),
        workloads=[by_name[name] for name in selected],
        peers=peers,
        base=Path(os.environ["BASE"]).resolve() if os.environ.get("BASE") else None,
        file=Path(os.environ["JSON"]) if os.environ.get("JSON") else None,
        lock=MachineLock.of_environment(),
    )
    comparison.facts = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": describe_commit(ROOT),
        "base": describe_commit(comparison.base) if comparison.base else "",
        "machine": describe_machine(),
        "python": platform.python_version(),
        "postgresql": describe_settings(),
        "rounds": comparison.rounds,
        "web_workers": comparison.web_workers,
        "seconds": seconds,
        "warm_up": comparison.warm_up,
        "workers": comparison.options.workers,
    }
    return comparison


def _read_list(name: str, known: list[str]) -> list[str]:
    words = [word for word in os.environ.get(name, "").split(",") if word] or known
    if unknown := [word for word in words if word not in known]:
        sys.exit(f"{name} has {', '.join(unknown)}, which is none of {', '.join(known)}.")
    return words


def describe_commit(folder: Path) -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def describe_machine() -> str:
    cores = os.cpu_count()
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{cores} cores ({model}), {memory:.0f} GiB, {platform.system()} {platform.release().partition('-')[0]}"


def start_systems(stack: ExitStack, comparison: Comparison, folder: Path) -> list[System]:
    """Start this server and, if they are selected and available, its base and conductor-oss."""
    starts = {THIS: partial(start_this_server, folder / "this", comparison.web_workers)}
    if comparison.base:
        starts[BASE] = partial(start_this_server, folder / "base", comparison.web_workers, comparison.base)
    if CONDUCTOR_OSS in comparison.peers:
        starts[CONDUCTOR_OSS] = partial(start_conductor_oss, folder / "conductor-oss")
    systems = []
    for name, start in starts.items():
        announce(f"Starting {name}")
        try:
            systems.append(stack.enter_context(start()))
        except NotAvailable as missing:
            comparison.missing[name] = str(missing)
            announce(f"{name} is not measured: {missing}")
    for system in systems:
        register(system, comparison.workloads)
    return systems


def warm_up(system: System, comparison: Comparison) -> None:
    """Put load on a server until it has reached its speed: all workloads in turn, the largest one excepted."""
    seconds = comparison.warm_up if system.name == CONDUCTOR_OSS else comparison.warm_up / 6
    workloads = [each for each in comparison.workloads if each.name not in {"fan_out_wide", "dispatch", "starts"}]
    register(system, [CHAIN])
    announce(f"Warming up {system.name} for {seconds:.0f} s")
    options = Options(seconds / max(len(workloads), 1), {system.name: WORKERS[1]})
    with comparison.lock.hold():
        for workload in workloads or [CHAIN]:
            measure_if_possible(comparison, workload, system, options)


def choose_workers(system: System, comparison: Comparison) -> None:
    """Choose the number of connections with which the server completes most tasks."""
    if system.name in comparison.options.workers:
        return
    rates = {}
    with comparison.lock.hold():
        for count in WORKERS:
            [sample] = CHAIN.measure(CHAIN, system, Options(WORKERS_SECONDS, {system.name: count}))
            rates[count] = sample.rate
    comparison.options.workers[system.name] = max(rates, key=rates.__getitem__)
    shown = ", ".join(f"{rate:.0f} with {count}" for count, rate in rates.items())
    announce(f"{system.name}: tasks/s by number of connections that poll: {shown}")


def measure_round(comparison: Comparison, systems: list[System], number: int) -> None:
    """Measure each workload on each server, in another order in each round."""
    with comparison.lock.hold():
        comparison.limits.append(measure_baseline(systems[0].database.url))
    for workload in comparison.workloads:
        with comparison.lock.hold():
            for system in systems if number % 2 else systems[::-1]:
                for sample in measure_if_possible(comparison, workload, system, comparison.options):
                    sample.round = number
                    comparison.samples.append(sample)
                    announce(f"Round {number}: {sample.workload}, {sample.system}: {sample.rate:.1f}/s")
        comparison.save()


def measure_if_possible(comparison: Comparison, workload: Workload, system: System, options: Options) -> list[Sample]:
    """Measure a workload on a server. After a failure, the other workloads are still measured."""
    try:
        return workload.measure(workload, system, options)
    except (OSError, EOFError, RuntimeError, ZeroDivisionError) as error:
        comparison.missing[f"{workload.label} on {system.name}"] = str(error)
        announce(f"{system.name}, {workload.name}: {error}")
        return []


def measure_engines(comparison: Comparison, folder: Path) -> None:
    """Measure the engines that do not have Conductor's API: a chain of five steps, in rounds."""
    selected = [engine for engine in ENGINES.values() if engine.name in comparison.peers]
    if not selected:
        return
    announce("Preparing the environment of the other engines")
    try:
        python = prepare_environment()
    except NotAvailable as missing:
        comparison.missing |= {engine.name: str(missing) for engine in selected}
        return
    for number in range(1, comparison.rounds + 1):
        for engine in selected:
            if engine.name not in comparison.missing:
                measure_engine_once(comparison, engine, python, folder / f"{engine.name}-{number}")
        comparison.save()


def measure_engine_once(comparison: Comparison, engine: Engine, python: Path, folder: Path) -> None:
    try:
        with comparison.lock.hold():
            results = measure_engine(engine, python, folder, comparison.options.seconds)
    except (NotAvailable, OSError, subprocess.SubprocessError) as missing:
        comparison.missing[engine.name] = str(missing)
        announce(f"{engine.name} is not measured: {missing}")
        return
    for result in results:
        announce(f"{result['label']}: {result['rate']:.1f} steps/s")
        comparison.engines.setdefault(result["label"], []).append(result)


def announce(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Run the comparison, print its tables in Markdown, and stop all processes, after an interruption as well."""
    comparison, is_interrupted = read_options(), False
    interrupt_once()
    try:
        with tempfile.TemporaryDirectory(prefix="conductor-bench-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            # PostgreSQL runs as another user if root runs the benchmark.
            folder.chmod(0o755)
            with ExitStack() as stack:
                systems = start_systems(stack, comparison, folder)
                for system in systems:
                    warm_up(system, comparison)
                    choose_workers(system, comparison)
                for number in range(1, comparison.rounds + 1):
                    measure_round(comparison, systems, number)
                comparison.lock.release()
            measure_engines(comparison, folder)
    except KeyboardInterrupt:
        is_interrupted = True
        announce("Interrupted. All processes are stopped; the tables have what was measured before.")
    finally:
        comparison.lock.release()
        comparison.save()
    print(render(comparison.as_json()), flush=True)
    if is_interrupted:
        sys.exit(130)


def interrupt_once() -> None:
    """Let SIGINT and SIGTERM interrupt the program once. Further ones must not disturb the end of its processes."""

    def interrupt(*_: object) -> NoReturn:
        for each in STOP_SIGNALS:
            signal.signal(each, lambda *_: None)
        raise KeyboardInterrupt

    for each in STOP_SIGNALS:
        signal.signal(each, interrupt)
