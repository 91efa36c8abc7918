"""A short sequence of faults in both profiles. `make faults` runs a long one with all kinds."""

import os
import signal
from collections.abc import Iterable
from random import Random

import pytest

from qa.faults.experiment import Outcome, Plan, run_experiment
from qa.faults.faults import Fault, Injection, catalog
from qa.faults.servers_under_test import ClusterServer, EmbeddedServer, ServerUnderTest

pytestmark = pytest.mark.slow

IS_ON_POSTGRESQL = "cluster" in os.environ.get("DJANGO_SETTINGS_MODULE", "")
SECONDS = 14.0


def run_short(profile: type[ServerUnderTest], *kinds: str) -> Outcome:
    """Run an experiment with one kill of a web process and one fault of each kind."""

    def choose(server: ServerUnderTest, chance: Random) -> Iterable[Fault]:
        by_kind = {fault.kind: fault for fault in catalog(server)}
        return [Fault("kill web", lambda _: kill_web(server)), *(by_kind[kind] for kind in kinds if kind in by_kind)]

    # A message to another system may need two minutes.
    plan = Plan(profile, choose, 1, SECONDS, rate=2.0, hold_factor=0.3, pauses=(0.2, 0.8), outbox_seconds=0)
    outcome = run_experiment(plan, lambda text: None)
    assert outcome.evidence.of("fault")
    assert len(outcome.evidence.state.orders) > 5
    return outcome


def kill_web(server: ServerUnderTest) -> Injection:
    targets = server.targets()
    name = "web1.child" if "web1.child" in targets else "web"
    for pid in targets[name]():
        os.kill(pid, signal.SIGKILL)
    return Injection(name)


@pytest.mark.skipif(IS_ON_POSTGRESQL, reason="The embedded profile has SQLite.")
def test_the_embedded_server_survives_faults():
    outcome = run_short(EmbeddedServer, "fault point", "fill disk", "stop process")

    assert outcome.violations == []


@pytest.mark.skipif(not IS_ON_POSTGRESQL, reason="The cluster brings its own database: once is enough.")
def test_the_cluster_survives_faults():
    outcome = run_short(ClusterServer, "kill postgresql", "cut postgresql", "kill redis", "hold back postgresql")

    assert outcome.violations == []
