"""The tasks of an order. A test ends the process at one of their points."""

import asyncio
import os
import signal
from importlib import import_module

import django
from django.db import transaction

from conductor_app import TaskContext, worker_task
from conductor_app.utils import fault_points

from .models import Effect

framework = import_module("django.tasks" if django.VERSION >= (6, 0) else "django_tasks")


def reach(point):
    """End this process at the point that its environment names, once."""
    if os.environ.get("SHOP_DIES_AT") == point:
        os.kill(os.getpid(), signal.SIGKILL)


if "SHOP_DIES_AT" in os.environ:
    fault_points.set_handler(reach)


@worker_task("charge", atomic=True, retries=20, retry_seconds=0, lease_seconds=1)
def charge(order_id: int, task: TaskContext) -> dict:
    """Charge the customer of an order, exactly once."""
    transaction.on_commit(lambda: reach("committed"), using=Effect.objects.db)
    reach("begun")
    Effect.objects.create(order_id=order_id, task="charge")
    reach("written")
    return {"charged": order_id, "step": task.step}


@worker_task("notify", retries=20, retry_seconds=0, lease_seconds=1)
def notify(order_id: int) -> None:
    """Notify the customer of an order, at least once."""
    Effect.objects.create(order_id=order_id, task="notify")
    reach("notified")


@worker_task("ship")
async def ship(order_id: int) -> int:
    """Ship an order."""
    await asyncio.sleep(0)
    return order_id


@framework.task(atomic=True, restarts=20, retry_seconds=0, lease_seconds=1)
def record(order_id: int) -> int:
    """Record something about an order, exactly once."""
    Effect.objects.create(order_id=order_id, task="record")
    reach("written")
    return order_id
