"""What the programs print: a line before each measurement, and its result as JSON."""

import json
import time
from collections.abc import Callable

STEPS, OPEN_CHAINS = 5, 100


def measure(label: str, run_for: Callable[[float], int], warm_up: float, seconds: float) -> None:
    """Run a load for a while, and then for the measured time. It returns the number of completed steps."""
    run_for(warm_up)
    print("begin", flush=True)
    began = time.perf_counter()
    steps = run_for(seconds)
    print(json.dumps({"label": label, "steps": steps, "seconds": time.perf_counter() - began}), flush=True)


def keep_open(begin: Callable[[], object], count_open: Callable[[], int]) -> Callable[[float], int]:
    """Return a load that keeps a number of chains open, and ends when all of them have ended."""

    def run(seconds: float) -> int:
        begun, ends_at = 0, time.perf_counter() + seconds
        while (found := count_open()) or time.perf_counter() < ends_at:
            if time.perf_counter() < ends_at:
                for _ in range(found, OPEN_CHAINS):
                    begin()
                    begun += 1
            time.sleep(0.03)
        return begun * STEPS

    return run
