"""Chain of five tasks of Django's tasks framework: each one enqueues the next. The settings choose the backend."""

from django_tasks import task
from progress import STEPS


@task
def do_step(number: int) -> dict:
    if number + 1 < STEPS:
        do_step.enqueue(number + 1)
    return {"done": True, "step": number}
