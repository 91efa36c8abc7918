"""Chain of five tasks in Celery: `celery_chain.py REDIS_URL WARM_UP SECONDS`, beside workers of this module."""

import os
import sys
import time

import redis
from celery import Celery, chain
from progress import STEPS, measure

URL = os.environ["BENCH_REDIS_URL"]
OPEN_CHAINS = 100
COUNTER = "bench:completed"
app = Celery("bench", broker=URL, backend=URL)
app.conf.update(task_track_started=False, worker_prefetch_multiplier=4, worker_hijack_root_logger=False)
counter = redis.Redis.from_url(URL)


@app.task(name="step")
def do_step(order: int) -> int:
    return order


@app.task(name="step without a result", ignore_result=True)
def do_step_without_result(order: int) -> int:
    return order


@app.task(name="last step", ignore_result=True)
def do_last_step(order: int) -> None:
    counter.incr(COUNTER)


def run_for(step):
    """Return a load that keeps a number of chains open."""
    signature = chain(step.s(1), *(step.s() for _ in range(STEPS - 2)), do_last_step.s())

    def run(seconds: float) -> int:
        counter.set(COUNTER, 0)
        begun = completed = 0
        ends_at = time.perf_counter() + seconds
        while time.perf_counter() < ends_at or completed < begun:
            completed = int(counter.get(COUNTER) or 0)
            if time.perf_counter() < ends_at:
                for _ in range(begun - completed, OPEN_CHAINS):
                    signature.apply_async()
                    begun += 1
            time.sleep(0.01)
        return begun * STEPS

    return run


def main() -> None:
    warm_up, seconds = float(sys.argv[2]), float(sys.argv[3])
    # A step whose result the next one needs is passed on in the message, so that a chain works without stored results.
    measure("Celery, no results", run_for(do_step_without_result), warm_up, seconds)
    measure("Celery, results in Redis", run_for(do_step), warm_up, seconds)


if __name__ == "__main__":
    main()
