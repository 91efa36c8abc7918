"""`manage.py conductor_worker` in processes of its own: several workers, their ends, and effects that happen once."""

import signal
from pathlib import Path

import psutil
import pytest

from tests.in_process.shop import DATABASES, PROJECT, Shop, stop
from tests.management.server import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

BEGIN = """
from conductor_app import get_run, start_workflow, wait_for
from orders.models import Effect, Order
def begin(name):
    order = Order.objects.create(customer="ann")
    return start_workflow(name, {"order_id": order.pk})
"""
POINTS = ("claimed", "begun", "written", "work-performed", "before-commit", "reported", "committed")
"""Where processes end while they execute an atomic function: from its claim until its commit, and after it."""


def ends(shop, ids):
    """Wait for the ends of workflows in another process, and return their statuses."""
    return shop.execute(f"{BEGIN}\nresult = [wait_for(id, timeout=240).status for id in {ids}]")


class Workers:
    """The worker processes of a test."""

    def __init__(self, shop: Shop, folder: Path) -> None:
        self.shop, self.folder, self.processes, self.logs = shop, folder, [], []

    def begin(self, *arguments: str, **variables: str):
        """Start a process, and return it."""
        log = self.folder / f"worker{len(self.logs)}.log"
        process = self.shop.begin("conductor_worker", *arguments, log=log, **variables)
        self.processes.append(process)
        self.logs.append(log)
        return process

    def said(self) -> str:
        """Return what all processes have printed."""
        return "\n".join(log.read_text() for log in self.logs)


@pytest.fixture
def workers(shop, tmp_path):
    found = Workers(shop, tmp_path)
    yield found
    for process in found.processes:
        stop(process, signal.SIGKILL)


@DATABASES
def test_tasks_of_several_queues_are_executed_until_the_process_is_stopped(shop, workers):
    ids = shop.execute(BEGIN + "\nresult = [begin('order') for _ in 'ab']")
    process = workers.begin("--threads", "2")

    assert ends(shop, ids) == ["COMPLETED"] * 2
    assert stop(process) == 0
    assert "Serving charge, django_tasks.default, notify, ship with 2 threads. Stop with Ctrl-C." in workers.said()
    assert workers.said().rstrip().endswith("Stopped.")
    output = shop.execute(BEGIN + f"\nresult = get_run({ids[0]!r}, with_tasks=True).task('ship').output")
    assert output["result"] == shop.execute(BEGIN + "\nresult = Order.objects.earliest('pk').pk")


@DATABASES
def test_an_atomic_function_has_its_effect_once_wherever_processes_are_killed(shop, workers):
    ids = shop.execute(BEGIN + f"\nresult = [begin('payment') for _ in range({len(POINTS) + 1})]")
    for point in POINTS:
        workers.begin("--queue", "charge", "--threads", "1", SHOP_DIES_AT=point)
    for process in workers.processes:
        assert process.wait(240) == -signal.SIGKILL, workers.said()
    workers.begin("--queue", "charge")

    assert ends(shop, ids) == ["COMPLETED"] * len(ids), workers.said()
    effects = shop.execute(BEGIN + "\nresult = [order.effect_set.count() for order in Order.objects.all()]")
    assert effects == [1] * len(ids)


@DATABASES
def test_an_enqueued_task_survives_the_end_of_its_process(shop, workers):
    enqueue = BEGIN + "\nfrom orders.tasks import record\nresult = record.enqueue(Order.objects.create().pk).id"
    id = shop.execute(enqueue)
    assert workers.begin("--threads", "1", SHOP_DIES_AT="written").wait(240) == -signal.SIGKILL
    workers.begin("--queue", "django_tasks.default")

    assert ends(shop, [id]) == ["COMPLETED"], workers.said()
    read = f"result = record.get_result({id!r}); found = [result.status, len(result.errors) > 0, result.return_value]"
    status, was_lost, value = shop.execute(f"from orders.tasks import record\n{read}\nresult = found")
    assert (status, was_lost, value) == ("SUCCESSFUL", True, shop.execute(BEGIN + "\nresult = Order.objects.get().pk"))
    assert shop.execute(BEGIN + "\nresult = Effect.objects.count()") == 1


def test_another_function_has_its_effect_again_if_its_process_is_killed_before_the_report(shop, workers):
    ids = shop.execute(BEGIN + "\nresult = [begin('notice')]")
    assert workers.begin("--queue", "notify", SHOP_DIES_AT="notified").wait(240) == -signal.SIGKILL
    workers.begin("--queue", "notify")

    assert ends(shop, ids) == ["COMPLETED"]
    # More, if the machine was so slow that the second process lost its lease.
    assert shop.execute(BEGIN + "\nresult = Effect.objects.count()") >= 2


def test_several_processes_share_the_tasks_and_are_restarted(shop, workers):
    define = BEGIN + "\nresult = [begin('payment') for _ in range(5)]"
    parent = workers.begin("--processes", "2", "--threads", "1")
    assert ends(shop, shop.execute(define)) == ["COMPLETED"] * 5
    wait_until(lambda: workers.said().count("Serving") == 2, seconds=240)

    assert stop(parent) == 0
    assert workers.said().count("Stopped.") == 2


def test_a_process_that_is_killed_is_replaced_by_another_one(shop, workers):
    parent = workers.begin("--processes", "2", "--threads", "1")
    wait_until(lambda: workers.said().count("Serving") == 2, seconds=240)
    psutil.Process(parent.pid).children()[0].kill()
    wait_until(lambda: workers.said().count("Serving") == 3, seconds=240)

    assert "A process ended with code -9. Starting another one." in workers.said()
    assert ends(shop, shop.execute(BEGIN + "\nresult = [begin('payment')]")) == ["COMPLETED"]
    assert stop(parent) == 0


def test_a_queue_without_function_is_an_error(shop):
    said = shop.call("conductor_worker", "--queue", "paint")

    assert said.returncode == 1
    assert (
        "No function with the decorator worker_task serves paint. The functions serve: charge, "
        "django_tasks.default, notify, ship." in said.stdout
    )


def test_a_process_starts_again_when_a_module_changes(shop, workers):
    process = workers.begin("--reload", SHOP_DEBUG="1")
    wait_until(lambda: "Serving" in workers.said(), seconds=240)

    def has_started_again():
        # Django's reloader does not notice a change before its first look at the modules.
        (PROJECT / "orders" / "tasks.py").touch()
        return workers.said().count("Serving") >= 2

    wait_until(has_started_again, seconds=240)
    stop(process)
