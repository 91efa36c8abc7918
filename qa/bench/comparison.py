"""Measure this server and others in alternating rounds: `make bench`. `qa.bench.__main__` has the options."""

import json
import os
import platform
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from .conductor_oss import ARTIFACT, CONDUCTOR_OSS, start_conductor_oss
from .database import SETTINGS, measure_limit
from .measurements import CHAIN, TARGETS, WORKLOADS, Options, Workload, register
from .other_engines import ENGINES, Engine, measure_engine, prepare_environment
from .report import render
from .samples import Sample
from .servers import CLUSTER, EMBEDDED, ROOT, NotAvailable, Server, Source, start_server, temporary_folder

THIS, BASE = "this server", "base"
"""The base is this server of another checkout or commit: the state before a change."""
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
PEERS = (CONDUCTOR_OSS, *ENGINES)
GROUPS = {"targets": TARGETS}
"""Words of ONLY that name several workloads."""


@dataclass
class Comparison:
    """Options and results of one comparison."""

    rounds: int
    web_workers: list[int]
    warm_up: float
    options: Options
    workloads: list[Workload]
    peers: list[str]
    base: str
    url: str
    file: Path | None
    facts: dict[str, Any] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)
    """Claims and completions per second that this server's database executes as plain SQL, by round."""
    engines: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Results of the engines that do not have Conductor's API, by name."""
    missing: dict[str, str] = field(default_factory=dict)
    """What could not be measured, and why."""

    @property
    def is_over(self) -> bool:
        return time.monotonic() + self.options.seconds > self.options.ends_at

    @property
    def profiles(self) -> list[str]:
        return sorted({workload.profile for workload in self.workloads})

    def workloads_of(self, server: Server) -> list[Workload]:
        return [each for each in self.workloads if each.profile == server.profile]

    def as_json(self) -> dict[str, Any]:
        return {
            "facts": self.facts,
            "limits": self.limits,
            "samples": [asdict(sample) for sample in self.samples],
            "engines": self.engines,
            "missing": self.missing,
        }

    def save(self) -> None:
        if self.file is not None:
            self.file.write_text(json.dumps(self.as_json(), indent=1) + "\n")


def read_options() -> Comparison:
    """Read the options from environment variables.

    Raises:
        SystemExit: an option is invalid.
    """
    get = os.environ.get
    profile = EMBEDDED if get("DB") == "sqlite" and not get("URL") else CLUSTER
    by_name = {each.name: replace(each, profile=each.profile or profile) for each in WORKLOADS}
    words = _read_list("ONLY", [*by_name, *GROUPS]) or list(by_name)
    selected = dict.fromkeys(name for word in words for name in GROUPS.get(word, (word,)))
    peers = list(PEERS) if get("PEERS") == "1" else _read_list("PEERS", list(PEERS))
    minutes = float(get("MINUTES", "0"))
    ends_at = time.monotonic() + 60 * minutes if minutes else float("inf")
    comparison = Comparison(
        rounds=int(get("ROUNDS", "3")),
        web_workers=[int(word) for word in get("WEB_WORKERS", "2").split(",")],
        warm_up=float(get("WARM_UP", "60")),
        options=Options(float(get("DURATION", "8")), int(get("CONNECTIONS", "16")), ends_at),
        workloads=[by_name[name] for name in selected if not get("URL") or by_name[name].profile == profile],
        peers=peers,
        base=get("BASE", ""),
        url=get("URL", "").rstrip("/"),
        file=Path(get("JSON", "")) if get("JSON") else None,
    )
    comparison.facts = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": describe_commit(ROOT),
        "base": describe_base(comparison.base) if comparison.base else "",
        "conductor_oss": " ".join(ARTIFACT.split(":")[1:3]) if CONDUCTOR_OSS in peers else "",
        "machine": describe_machine(),
        "python": platform.python_version(),
        "postgresql": ", ".join(f"{name}={value}" for name, value in SETTINGS.items() if value),
        "web_workers": comparison.web_workers,
        "seconds": comparison.options.seconds,
        "connections": comparison.options.connections,
        "warm_up": comparison.warm_up,
        "servers": [],
    }
    return comparison


def _read_list(name: str, known: list[str]) -> list[str]:
    words = [word for word in os.environ.get(name, "").split(",") if word]
    if unknown := [word for word in words if word not in known]:
        sys.exit(f"{name} has {', '.join(unknown)}, which is none of {', '.join(known)}.")
    return words


def describe_base(name: str) -> str:
    return describe_commit(Path(name)) if Path(name).is_dir() else name[:8]


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


def start_servers(stack: ExitStack, comparison: Comparison, folder: Path) -> list[Server]:
    """Start this server and, if they are selected and available, its base and conductor-oss."""
    if comparison.url:
        servers = [Server(THIS, comparison.url, os.environ.get("TOKEN", ""))]
        register(servers[0], comparison.workloads)
        return servers
    counts = comparison.web_workers
    sources = {(THIS if len(counts) == 1 else f"web processes: {count}"): (Source(), count) for count in counts}
    if comparison.base:
        sources[BASE] = Source.named(comparison.base, folder / "base"), counts[0]
    servers = []
    for profile in comparison.profiles:
        for name, (source, count) in sources.items():
            place = folder / f"{profile} {name}".replace(" ", "-").replace(":", "")
            place.mkdir()
            announce(f"Starting {name}, {profile}")
            logged = replace(source, log=place / "server.log")
            workers = count if profile == CLUSTER else 1
            servers.append(stack.enter_context(start_server(profile, place, workers, name, logged)))
    if CONDUCTOR_OSS in comparison.peers:
        announce(f"Starting {CONDUCTOR_OSS}")
        try:
            servers.append(stack.enter_context(start_conductor_oss(folder / CONDUCTOR_OSS)))
        except NotAvailable as missing:
            comparison.missing[CONDUCTOR_OSS] = str(missing)
            announce(f"{CONDUCTOR_OSS} is not measured: {missing}")
    for server in servers:
        register(server, comparison.workloads_of(server))
    return servers


def warm_up(server: Server, comparison: Comparison) -> None:
    """Put load on a server until it has reached its speed, with each of the workloads that are a plain load."""
    seconds = comparison.warm_up if server.name == CONDUCTOR_OSS else comparison.warm_up / 6
    plain = [each for each in comparison.workloads_of(server) if each.is_plain_load] or [CHAIN]
    register(server, plain)
    announce(f"Warming up {server.name}, {server.profile}, for {seconds:.0f} s")
    options = replace(comparison.options, seconds=seconds / len(plain))
    for workload in plain:
        measure_if_possible(comparison, workload, server, options)


def measure_round(comparison: Comparison, servers: list[Server], number: int) -> None:
    """Measure each workload on each server, in another order in each round."""
    if servers[0].database:
        comparison.limits.append(measure_limit(servers[0].database))
    for workload in comparison.workloads:
        for server in servers if number % 2 else servers[::-1]:
            if server.profile != workload.profile or comparison.is_over:
                continue
            for sample in measure_if_possible(comparison, workload, server, comparison.options):
                sample.round = number
                comparison.samples.append(sample)
                announce(f"Round {number}: {sample.workload}, {sample.server}: {sample.rate:.1f}/s")
        comparison.save()


def measure_if_possible(comparison: Comparison, workload: Workload, server: Server, options: Options) -> list[Sample]:
    """Measure a workload on a server. After a failure, the other workloads are still measured."""
    try:
        return workload.measure(workload, server, options)
    except (OSError, EOFError, RuntimeError, ZeroDivisionError, subprocess.SubprocessError) as error:
        comparison.missing[f"{workload.label or workload.name} on {server.name}"] = str(error)
        announce(f"{server.name}, {workload.name}: {error}")
        return []


def prepare_engines(comparison: Comparison) -> list[Engine]:
    """Return the selected engines that do not have Conductor's API, with their packages installed."""
    selected = [engine for engine in ENGINES.values() if engine.name in comparison.peers]
    if all(engine.is_own for engine in selected):
        return selected
    announce("Preparing the environment of the other engines")
    try:
        prepare_environment()
    except NotAvailable as missing:
        comparison.missing |= {engine.name: str(missing) for engine in selected if not engine.is_own}
    return selected


def measure_engines(comparison: Comparison, engines: list[Engine], number: int, folder: Path) -> None:
    """Measure the engines that do not have Conductor's API in one round: a chain of five steps."""
    for engine in engines if number % 2 else engines[::-1]:
        if engine.name not in comparison.missing and not comparison.is_over:
            measure_engine_once(comparison, engine, folder / f"{engine.name}-{number}")
    comparison.save()


def measure_engine_once(comparison: Comparison, engine: Engine, folder: Path) -> None:
    try:
        results = measure_engine(engine, folder, comparison.options.seconds)
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
        with temporary_folder() as folder, ExitStack() as stack:
            servers = start_servers(stack, comparison, folder)
            comparison.facts["servers"] = list(dict.fromkeys(server.name for server in servers))
            engines = prepare_engines(comparison)
            for server in servers if comparison.warm_up else ():
                warm_up(server, comparison)
            for number in range(1, comparison.rounds + 1):
                measure_round(comparison, servers, number)
                measure_engines(comparison, engines, number, folder)
    except NotAvailable as missing:
        sys.exit(str(missing))
    except KeyboardInterrupt:
        is_interrupted = True
        announce("Interrupted. All processes are stopped; the tables have what was measured before.")
    finally:
        comparison.save()
    if comparison.is_over:
        comparison.missing["The rest"] = "The time limit of MINUTES was reached."
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
