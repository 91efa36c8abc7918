"""The catalog of faults. Each fault is injected, held for some seconds, and healed."""

import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from conductor_app.utils.fault_points import POINTS

from .backends import STOP_FAST
from .processes import Member, process_tree
from .proxy import Proxy
from .servers_under_test import ClusterServer, Pids, ServerUnderTest


@dataclass
class Injection:
    """A fault that was injected. `subject`: what it affects. `heal`: ends it. `skew_seconds`: the step of a clock."""

    subject: str
    heal: Callable[[], None] = lambda: None
    skew_seconds: float = 0.0


@dataclass(frozen=True)
class Fault:
    """A kind of fault. `hold_seconds`: the shortest and longest time until it is healed."""

    kind: str
    inject: Callable[[Random], Injection]
    hold_seconds: tuple[float, float] = (0.0, 0.0)


def catalog(server: ServerUnderTest) -> list[Fault]:
    """Return the faults that this server and this machine allow."""
    faults = [
        Fault("kill process", lambda chance: _kill(server.targets(), chance)),
        Fault("stop process", lambda chance: _stop(server.targets(), chance), (1, 8)),
        Fault("fault point", lambda chance: _arm_point(server.folder / "points", signal.SIGKILL, chance), (3, 6)),
        Fault(
            "stop at fault point", lambda chance: _arm_point(server.folder / "points", signal.SIGSTOP, chance), (3, 8)
        ),
        Fault("step clock", lambda chance: _step_clock(server, chance), (3, 8)),
    ]
    if server.disk.is_mounted:
        faults.append(Fault("fill disk", lambda chance: _fill_disk(server), (2, 6)))
    return faults + (_backend_faults(server) if isinstance(server, ClusterServer) else [])


def _backend_faults(server: ClusterServer) -> list[Fault]:
    postgresql, redis = server.postgresql, server.redis
    faults = [
        Fault("kill postgresql", lambda chance: _end(postgresql.member, signal.SIGKILL, postgresql.start), (0, 5)),
        Fault("restart postgresql", lambda chance: _end(postgresql.member, STOP_FAST, postgresql.start), (0, 3)),
        Fault("stop postgresql", lambda chance: _stop_member(postgresql.member), (1, 8)),
        Fault("kill session of postgresql", lambda chance: _kill_session(postgresql.member, chance), (0, 1)),
        Fault("kill redis", lambda chance: _end(redis.member, signal.SIGKILL, redis.start), (0, 5)),
        Fault("stop redis", lambda chance: _stop_member(redis.member), (1, 8)),
    ]
    for name, proxies in server.proxies.items():
        faults += _connection_faults(name, proxies)
    return faults


def _connection_faults(name: str, proxies: Mapping[str, Proxy]) -> list[Fault]:
    def affect(act: Callable[[Proxy], None]) -> Callable[[Random], Injection]:
        def inject(chance: Random) -> Injection:
            roles = sorted(proxies) if chance.random() < 0.5 else [chance.choice(sorted(proxies))]
            chosen = [proxies[role] for role in roles]
            for proxy in chosen:
                act(proxy)

            def heal() -> None:
                for proxy in chosen:
                    proxy.heal()

            return Injection(" ".join(roles), heal)

        return inject

    return [
        Fault(f"cut {name}", affect(Proxy.cut)),
        Fault(f"refuse {name}", affect(Proxy.refuse), (1, 6)),
        Fault(f"hold back {name}", affect(Proxy.hold_back), (1, 8)),
        Fault(f"slow {name}", affect(lambda proxy: proxy.slow_down(0.05)), (3, 8)),
    ]


def _kill(targets: Mapping[str, Pids], chance: Random) -> Injection:
    name = chance.choice(sorted(targets))
    _send_all(targets[name](), signal.SIGKILL)
    return Injection(name)


def _stop(targets: Mapping[str, Pids], chance: Random) -> Injection:
    name = chance.choice(sorted(targets))
    pids = targets[name]()
    _send_all(pids, signal.SIGSTOP)
    return Injection(name, lambda: _send_all(pids, signal.SIGCONT))


def _stop_member(member: Member) -> Injection:
    pids = process_tree(member.pid)
    _send_all(pids, signal.SIGSTOP)
    return Injection(member.name, lambda: _send_all(pids, signal.SIGCONT))


def _end(member: Member, number: int, start: Callable[[], None]) -> Injection:
    if number == signal.SIGKILL:
        member.kill()
    else:
        member.terminate(number)
    return Injection(member.name, start)


def _kill_session(member: Member, chance: Random) -> Injection:
    """Kill a server process of PostgreSQL, after which it ends all sessions and recovers."""
    children = process_tree(member.pid)[1:]
    if children:
        _send_all([chance.choice(children)], signal.SIGKILL)
    return Injection(member.name)


def _arm_point(folder: Path, number: int, chance: Random) -> Injection:
    """Let the next process that reaches a random point kill or stop itself."""
    point = chance.choice(POINTS)
    draft = folder / f"{point}.draft"
    draft.write_text(str(int(number)))
    draft.rename(folder / point)

    def heal() -> None:
        (folder / point).unlink(missing_ok=True)
        for taken in folder.glob(f"{point}.taken.*"):
            _send_all([int(taken.suffix[1:])], signal.SIGCONT)
            taken.rename(folder / f"healed.{taken.name}")

    return Injection(point, heal)


def _step_clock(server: ServerUnderTest, chance: Random) -> Injection:
    role = chance.choice(server.clock_roles())
    offset = chance.choice((-10_000, -1_500, 1_500, 10_000))
    path = server.folder / "clocks" / role
    draft = path.with_suffix(".draft")
    draft.write_text(str(offset))
    draft.rename(path)
    return Injection(f"{role} {offset / 1000:+g} s", lambda: path.unlink(missing_ok=True), abs(offset) / 1000)


def _fill_disk(server: ServerUnderTest) -> Injection:
    server.disk.fill()

    def heal() -> None:
        server.disk.free()
        if isinstance(server, ClusterServer):
            server.postgresql.wait()

    return Injection("disk", heal)


def _send_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def fault_sequence(faults: Sequence[Fault], chance: Random) -> Iterable[Fault]:
    """Yield faults endlessly: each kind once, in random order, and again."""
    while True:
        yield from chance.sample(faults, len(faults))
