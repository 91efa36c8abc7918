"""Chain of five tasks of workers in a Django project: `in_process_chain.py DATABASE_URL WARM_UP SECONDS`.

`in_process_chain.py worker` is one of the worker processes. This program needs the packages of this project.
"""

import sys

from progress import STEPS, keep_open, measure

CHAIN, ATOMIC_CHAIN = "chain", "atomic_chain"


def do_step(order: int) -> dict:
    return {"done": True, "order": order}


def declare() -> None:
    """Declare the functions of both chains."""
    from conductor_app import worker_task

    for number in range(STEPS):
        worker_task(f"{CHAIN}_{number}")(do_step)
        worker_task(f"{ATOMIC_CHAIN}_{number}", atomic=True)(do_step)


def define(name: str) -> None:
    from conductor_app.definitions.commands import save_workflow

    inputs = {"order": "${workflow.input.order}"}
    names = [f"{name}_{number}" for number in range(STEPS)]
    tasks = [{"name": each, "taskReferenceName": each, "type": "SIMPLE", "inputParameters": inputs} for each in names]
    save_workflow({"name": name, "version": 1, "tasks": tasks}, "bench", overwrite=True)


def prepare() -> None:
    from django.core.management import call_command

    from conductor_app.in_process.tasks import find_tasks
    from conductor_app.management.commands.conductor_worker import save_missing_definitions

    call_command("migrate", verbosity=0)
    save_missing_definitions(find_tasks())
    for name in (CHAIN, ATOMIC_CHAIN):
        define(name)


def main() -> None:
    from django_settings import configure

    configure("conductor_app", "conductor_app.in_process.tasks_backend.ConductorBackend")
    import framework_chain

    from conductor_app import start_workflow
    from conductor_app.runs.models import Run

    declare()
    if sys.argv[1] == "worker":
        from django.core.management import call_command

        call_command("conductor_worker", reload=False)
        return
    if sys.argv[1] == "prepare":
        prepare()
        return

    def count_open() -> int:
        return Run.objects.filter(status="RUNNING").count()

    def chain_of(name: str):
        return keep_open(lambda: start_workflow(name, {"order": 1}), count_open)

    warm_up, seconds = float(sys.argv[2]), float(sys.argv[3])
    measure("Django project, `worker_task`", chain_of(CHAIN), warm_up, seconds)
    measure("Django project, `worker_task`, atomic", chain_of(ATOMIC_CHAIN), warm_up, seconds)
    load = keep_open(lambda: framework_chain.do_step.enqueue(0), count_open)
    measure("Django project, backend of `django.tasks`", load, warm_up, seconds)


if __name__ == "__main__":
    main()
