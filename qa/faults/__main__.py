"""`make faults MINUTES=30 [SEED=…]`: run a server under load, inject faults, and verify the history.

Environment: MINUTES (10), SEED (random), PROFILE (cluster, embedded or both), RATE (workflows per second), KINDS (a
regular expression), VAR (the folder of histories and logs).
"""

import os
import random
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

from .experiment import Plan, run_experiment, summarize
from .faults import Fault, catalog, fault_sequence
from .processes import ROOT
from .servers_under_test import ClusterServer, EmbeddedServer, ServerUnderTest

PROFILES: dict[str, tuple[Any, ...]] = {
    "cluster": (ClusterServer,),
    "embedded": (EmbeddedServer,),
    "both": (ClusterServer, EmbeddedServer),
}
EMBEDDED_SHARE = 0.2


def main() -> int:
    """Return 1 if there is a violation."""
    minutes, seed = float(os.environ.get("MINUTES") or 10), int(os.environ.get("SEED") or random.randrange(10**6))
    profiles = PROFILES[os.environ.get("PROFILE") or "both"]
    folder = Path(os.environ.get("VAR") or ROOT / "var" / "faults")
    folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}: reproduce with `make faults MINUTES={minutes:g} SEED={seed}`", flush=True)
    violations = 0
    for profile in profiles:
        share = 1.0 if len(profiles) == 1 else EMBEDDED_SHARE if profile is EmbeddedServer else 1 - EMBEDDED_SHARE
        plan = Plan(
            profile,
            choose_faults,
            seed,
            minutes * 60 * share,
            rate=float(os.environ.get("RATE") or 3),
            history_path=folder / f"{profile.profile}-{seed}-{int(time.time())}.jsonl",
        )
        print(f"== {profile.profile}, {plan.seconds / 60:.1f} minutes", flush=True)
        outcome = run_experiment(plan, lambda text: print(text, flush=True))
        print("\n".join(summarize(outcome)), flush=True)
        violations += len(outcome.violations)
    print("0 violations" if not violations else f"{violations} VIOLATIONS, seed {seed}", flush=True)
    return int(violations > 0)


def choose_faults(server: ServerUnderTest, chance: Random) -> Iterable[Fault]:
    """Return the faults to inject: all kinds, or those that KINDS names."""
    wanted = os.environ.get("KINDS", "")
    return fault_sequence([fault for fault in catalog(server) if re.search(wanted, fault.kind)], chance)


if __name__ == "__main__":
    sys.exit(main())
