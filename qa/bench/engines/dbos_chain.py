"""Chain of five steps in DBOS: `dbos_chain.py DATABASE_URL WARM_UP SECONDS`."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from dbos import DBOS
from progress import STEPS, measure

QUEUE, POLLING_SECONDS = "bench", 0.1
"""The default interval of a queue is 1 s."""
THREADS, THREADS_OF_QUEUED_CHAINS = 8, 32


@DBOS.step()
def do_step(order: int, number: int) -> dict:
    return {"done": True, "order": order, "step": number}


@DBOS.workflow()
def run_chain(order: int) -> int:
    for number in range(STEPS):
        do_step(order, number)
    return order


@DBOS.workflow()
def run_one_step(order: int, number: int) -> dict:
    return do_step(order, number)


@DBOS.workflow()
def run_queued_chain(order: int) -> int:
    for number in range(STEPS):
        DBOS.enqueue_workflow(QUEUE, run_one_step, order, number).get_result(polling_interval_sec=0.05)
    return order


def run_for(workflow, threads: int):
    """Return a load that calls a workflow in a number of threads."""

    def call_until(ends_at: float) -> int:
        steps = 0
        while time.perf_counter() < ends_at:
            workflow(steps)
            steps += STEPS
        return steps

    def run(seconds: float) -> int:
        with ThreadPoolExecutor(threads) as pool:
            return sum(pool.map(call_until, [time.perf_counter() + seconds] * threads))

    return run


def main() -> None:
    url, warm_up, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "run_admin_server": False})
    DBOS.launch()
    DBOS.register_queue(QUEUE, polling_interval_sec=POLLING_SECONDS)
    measure("DBOS, steps called in process", run_for(run_chain, THREADS), warm_up, seconds)
    measure("DBOS, each step through its queue", run_for(run_queued_chain, THREADS_OF_QUEUED_CHAINS), warm_up, seconds)
    DBOS.destroy()


if __name__ == "__main__":
    main()
