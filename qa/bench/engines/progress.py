"""What the programs print: a line before each measurement, and its result as JSON."""

import json
import time
from collections.abc import Callable

STEPS = 5


def measure(label: str, run_for: Callable[[float], int], warm_up: float, seconds: float) -> None:
    """Run a load for a while, and then for the measured time. It returns the number of completed steps."""
    run_for(warm_up)
    print("begin", flush=True)
    began = time.perf_counter()
    steps = run_for(seconds)
    print(json.dumps({"label": label, "steps": steps, "seconds": time.perf_counter() - began}), flush=True)
