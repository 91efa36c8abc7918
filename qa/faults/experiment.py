"""One run of the workload with faults: start a server, inject faults, wait for the end of all runs, and verify."""

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from threading import Event, Thread

import orjson

from .definitions import ORDER, SCHEDULE, WAIT_SECONDS, register_definitions
from .faults import Fault
from .final_state import FinalState, count_open, read_final_state
from .history import History
from .http_client import OK, FaultClient
from .listener import StatusListener
from .servers_under_test import ClusterServer, ServerUnderTest, running_server
from .verifier import RECOVERY_SECONDS, Evidence, Violation, ended_timers, lateness_beyond_bound, verify
from .workload import Workload

STALL_SECONDS, STALL_CHECK_SECONDS = 0.25, 0.05
CORES = os.cpu_count() or 1
OVERLOAD_PER_CORE = 3.0
"""The number of runnable threads per core, on average over a second, above which the machine counts as overloaded."""
SETTLE_SECONDS = 60.0
"""The time in which all runs must end after the last fault."""
OUTBOX_SECONDS = 150.0
"""A message to another system is published again two minutes after its publisher lost the database or was killed."""
PAUSE_SECONDS = (1.5, 5.0)


@dataclass
class Outcome:
    """The result of an experiment."""

    profile: str
    violations: list[Violation]
    evidence: Evidence
    history: History
    log_lines: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Plan:
    """What an experiment does. `faults`: returns the faults to inject, given the server and the random numbers."""

    profile: type[ServerUnderTest]
    faults: Callable[[ServerUnderTest, Random], Iterable[Fault]]
    seed: int
    seconds: float
    rate: float = 3.0
    hold_factor: float = 1.0
    pauses: tuple[float, float] = PAUSE_SECONDS
    history_path: Path | None = None
    outbox_seconds: float = OUTBOX_SECONDS
    """The time in which all messages to other systems must be sent after the last fault, 0 to ignore them."""


def run_experiment(plan: Plan, say: Callable[[str], None] = print) -> Outcome:
    """Run one experiment."""
    history = History(plan.history_path)
    with (
        closing(StatusListener(history)) as listener,
        running_server(plan.profile, history, listener.url) as server,
    ):
        client = FaultClient(server.urls, server.token)
        register_definitions(client, listener.url)
        stalls = StallMonitor(history)
        workload = Workload(server.urls, server.token, history, plan.rate, plan.seed)
        workload.start()
        inject_faults(plan, server, history, say)
        workload.stop_starting()
        _settle(plan, client, history, say)
        workload.stop()
        stalls.stop()
        keys = list(dict.fromkeys(event["key"] for event in history.of("start")))
        state = read_final_state(client, keys)
        if isinstance(server, ClusterServer):
            state.leases = server.lease_history()
        evidence = Evidence(history.events, state, expects_messages=plan.outbox_seconds > 0)
        violations = verify(evidence)
        lines = count_log_lines(server.folder / "logs")
        if violations:
            _keep_evidence(server.folder / "logs", state, plan, say)
    return Outcome(plan.profile.profile, violations, evidence, history, lines)


def inject_faults(plan: Plan, server: ServerUnderTest, history: History, say: Callable[[str], None]) -> None:
    """Inject one fault after another until the time is over or there are no more."""
    chance, ends_at = Random(plan.seed), time.monotonic() + plan.seconds
    time.sleep(min(2.0, plan.seconds))
    for number, fault in enumerate(plan.faults(server, chance), 1):
        if time.monotonic() >= ends_at:
            break
        inject(fault, plan, server, history, chance, partial(_say_with_number, say, number))
        time.sleep(chance.uniform(*plan.pauses))


def _say_with_number(say: Callable[[str], None], number: int, text: str) -> None:
    say(f"{number:4} {text}")


def inject(
    fault: Fault, plan: Plan, server: ServerUnderTest, history: History, chance: Random, say: Callable[[str], None]
) -> None:
    """Inject a fault, heal it, and wait for the recovery."""
    injected = time.time()
    injection = fault.inject(chance)
    time.sleep(chance.uniform(*fault.hold_seconds) * plan.hold_factor)
    injection.heal()
    healed = time.time()
    has_recovered = server.wait_until_recovered(RECOVERY_SECONDS)
    recovered = time.time()
    history.record(
        "fault",
        name=fault.kind,
        subject=injection.subject,
        injected=injected,
        healed=healed,
        recovered=recovered,
        has_recovered=has_recovered,
        skew=injection.skew_seconds,
    )
    say(
        f"{fault.kind:28} {injection.subject:28} held {healed - injected:4.1f} s, "
        f"{'recovered in' if has_recovered else 'NOT RECOVERED in'} {recovered - healed:4.1f} s"
    )


def _settle(plan: Plan, client: FaultClient, history: History, say: Callable[[str], None]) -> None:
    """Pause the schedule, and wait until all runs have ended and all messages are sent."""
    _wait(lambda: client.send("GET", f"/scheduler/schedules/{SCHEDULE}/pause").is_ok, SETTLE_SECONDS)
    time.sleep(WAIT_SECONDS)
    if not _wait(lambda: count_open(client) == 0, SETTLE_SECONDS):
        say("Not all runs have ended.")
    _wait(lambda: _are_notified(client, history), plan.outbox_seconds)


def _are_notified(client: FaultClient, history: History) -> bool:
    notified = {event["run"] for event in history.of("notified") if event["status"] == "COMPLETED"}
    acknowledged = {event["body"] for event in history.of("start") if event["status"] == 200}
    total = client.send("GET", f"/workflow/search?query=workflowType%3D{ORDER}&size=1")
    return acknowledged <= notified and total.is_ok and total.body["totalHits"] <= len(notified)


def _wait(look: Callable[[], bool], seconds: float) -> bool:
    ends_at = time.monotonic() + seconds
    while not look():
        if time.monotonic() > ends_at:
            return False
        time.sleep(0.5)
    return True


class StallMonitor:
    """Records the periods in which this machine was overloaded, so that a delay says nothing about the server."""

    def __init__(self, history: History) -> None:
        self._history, self._stopping = history, Event()
        self._thread = Thread(target=self._watch, name="stalls", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _watch(self) -> None:
        runnable: deque[int] = deque(maxlen=round(1 / STALL_CHECK_SECONDS))
        while not self._stopping.is_set():
            before = time.time()
            time.sleep(STALL_CHECK_SECONDS)
            now = time.time()
            runnable.append(count_runnable())
            if now - before - STALL_CHECK_SECONDS > STALL_SECONDS:
                self._history.record("stall", starts=before, ends=now)
            elif len(runnable) == runnable.maxlen and sum(runnable) > OVERLOAD_PER_CORE * len(runnable) * CORES:
                load = sum(runnable) / len(runnable) / CORES
                self._history.record("overload", starts=now - 1.0, ends=now, load=load)
                runnable.clear()


def count_runnable() -> int:
    """Return the number of runnable threads of this machine, without this one."""
    return int(Path("/proc/loadavg").read_text().split()[3].split("/")[0]) - 1


def count_log_lines(folder: Path) -> Counter[str]:
    """Return the number of log lines with an unexpected exception, by its type."""
    found: Counter[str] = Counter()
    for path in folder.glob("*.log"):
        for line in path.read_text(errors="replace").splitlines():
            if line and not line[0].isspace() and ("Error" in line or "Exception" in line) and ": " in line:
                found[line.split(":", 1)[0][:80]] += 1
    return found


def _keep_evidence(folder: Path, state: FinalState, plan: Plan, say: Callable[[str], None]) -> None:
    """Save the logs and the final state beside the history."""
    if plan.history_path is None:
        return
    target = plan.history_path.parent / f"{plan.history_path.stem}-logs"
    target.mkdir(exist_ok=True)
    for path in folder.glob("*.log"):
        (target / path.name).write_bytes(path.read_bytes())
    (target / "final_state.json").write_bytes(orjson.dumps(asdict(state)))
    say(f"The logs and the final state are in {target}.")


def summarize(outcome: Outcome) -> Sequence[str]:
    """Return the lines of a report."""
    evidence, history = outcome.evidence, outcome.history
    faults = Counter(event["name"] for event in evidence.of("fault"))
    seconds = sorted(event["recovered"] - event["healed"] for event in evidence.of("fault"))
    tasks = evidence.tasks.values()
    timers = ended_timers(evidence)
    late = [excess for task in timers if (excess := lateness_beyond_bound(evidence, task)) > 0]
    reports = history.of("report")
    statuses = Counter(event["status"] for kind in ("start", "poll", "report") for event in history.of(kind))
    overloads = [event["load"] for event in evidence.of("overload")]
    stalls = [event["ends"] - event["starts"] for event in evidence.of("stall")]
    lines = [
        f"faults: {sum(faults.values())} ({', '.join(f'{name} {count}' for name, count in sorted(faults.items()))})",
        f"recovery: median {seconds[len(seconds) // 2]:.1f} s, maximum {seconds[-1]:.1f} s" if seconds else "",
        f"runs: {sum(map(len, evidence.state.orders.values()))} of {len(evidence.state.orders)} starts, "
        f"{len(evidence.state.children)} sub-workflows, "
        f"{sum(map(len, evidence.state.echoes.values()))} of events, {len(evidence.state.slots)} of the schedule",
        f"attempts: {len(tasks)}; reports: {len(reports)}, {sum(e['status'] in OK for e in reports)} acknowledged",
        f"timers: {len(timers)}; {len(late)} beyond 1 s because of overload, by up to {max(late, default=0):.1f} s",
        f"ended processes: {history.count('exit')}; messages: {history.count('notified')}",
        f"failed requests: {dict(sorted((status, n) for status, n in statuses.items() if status not in OK))}",
        f"this machine: {len(stalls)} stalls, {sum(stalls):.1f} s in total; overloaded for {len(overloads)} s, "
        f"with up to {max(overloads, default=0):.0f} runnable threads per core",
        f"violations: {len(outcome.violations)}",
    ]
    by_rule = Counter(violation.rule for violation in outcome.violations)
    lines += [f"  {count} x {rule}" for rule, count in by_rule.items()]
    lines += [f"  {' | '.join(violation)}" for violation in outcome.violations[:40]]
    return [line for line in lines if line]
