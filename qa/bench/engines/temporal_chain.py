"""Chain of five activities in Temporal: `temporal_chain.py ADDRESS WARM_UP SECONDS`, with its worker."""

import asyncio
import json
import sys
import time
import uuid
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

STEPS, OPEN_RUNS = 5, 10
QUEUE = "bench"


@activity.defn
async def do_step(order: int) -> int:
    return order


@workflow.defn
class Chain:
    @workflow.run
    async def run(self, order: int) -> int:
        for _ in range(STEPS):
            order = await workflow.execute_activity(do_step, order, start_to_close_timeout=timedelta(seconds=60))
        return order


async def run_for(client: Client, seconds: float) -> int:
    """Keep a number of workflows open."""
    ends_at = time.perf_counter() + seconds

    async def start_until_end() -> int:
        steps = 0
        while time.perf_counter() < ends_at:
            await client.execute_workflow(Chain.run, 1, id=str(uuid.uuid4()), task_queue=QUEUE)
            steps += STEPS
        return steps

    return sum(await asyncio.gather(*(start_until_end() for _ in range(OPEN_RUNS))))


async def main() -> None:
    address, warm_up, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    client = await Client.connect(address)
    async with Worker(client, task_queue=QUEUE, workflows=[Chain], activities=[do_step]):
        await run_for(client, warm_up)
        print("begin", flush=True)
        began = time.perf_counter()
        steps = await run_for(client, seconds)
        result = {"label": "Temporal, development server", "steps": steps, "seconds": time.perf_counter() - began}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
