"""The workers of the shop. A worker is a function: its parameters are the input of the task, its result is the output.

An exception fails the attempt, and the definition of the task (`workflows.py`) determines if and when it is retried.
NonRetryableException fails the task without retries.
"""

import asyncio
import time

from conductor.client.context.task_context import TaskInProgress, get_task_context
from conductor.client.worker.exception import NonRetryableException
from conductor.client.worker.worker_task import worker_task

REFUSED_CARD = "token-of-0002"
SHELF_SECONDS, PAYMENT_SECONDS, ROAD_SECONDS = 0.4, 0.3, 0.3


@worker_task(task_definition_name="screen_for_fraud", thread_count=10)
async def screen_for_fraud(customer: dict, total: float) -> dict:
    """Return a fraud score. An `async def` worker: one process executes ten of these tasks concurrently."""
    await asyncio.sleep(0.2)
    return {"score": 0.02 if customer.get("known_since") else 0.31, "amount": total}


@worker_task(task_definition_name="pick_item", thread_count=4)
def pick_item(sku: str, quantity: int) -> dict:
    """Pick one line of an order. Four lines are picked in parallel."""
    time.sleep(SHELF_SECONDS)
    get_task_context().add_log(f"Took {quantity} x {sku}")
    return {"sku": sku, "picked": quantity}


@worker_task(task_definition_name="pack_parcel")
def pack_parcel(items: dict) -> dict | TaskInProgress:
    """Pack a parcel, without blocking a thread: report the progress and the time of the next call."""
    if get_task_context().get_poll_count() < 2:
        return TaskInProgress(callback_after_seconds=1, output={"progress": "wrapped"})
    return {"progress": "sealed", "weight_kg": round(0.4 * len(items), 1)}


@worker_task(task_definition_name="charge_card")
def charge_card(order_id: str, card: str, amount: float) -> dict:
    """Charge the card that a token stands for.

    Raises:
        NonRetryableException: when the bank refuses the card. A retry would not help.
    """
    time.sleep(PAYMENT_SECONDS)
    if card == REFUSED_CARD:
        raise NonRetryableException(f"The bank refused {amount:.2f} EUR on the card ending in {card[-4:]}")
    return {"receipt": f"R-{order_id}", "amount": amount}


@worker_task(task_definition_name="book_courier")
def book_courier(order_id: str, courier: str) -> dict:
    """Book a courier.

    Raises:
        ConnectionError: when the server of the courier is down. The definition of the task says when it is retried.
    """
    attempt = get_task_context().get_retry_count() + 1
    if courier == "Fjell Express" and attempt < 3:
        raise ConnectionError(f"{courier} responded with 503 Service Unavailable")
    return {"booking": f"{courier.split()[0].upper()}-{order_id}", "attempt": attempt}


@worker_task(task_definition_name="track_parcel")
def track_parcel(booking: str, look: int) -> dict:
    """Return the position of the parcel. The workflow repeats the task until the parcel is delivered."""
    time.sleep(ROAD_SECONDS)
    places = ["sorting center", "on the van", "delivered"]
    return {"booking": booking, "place": places[min(look, len(places)) - 1]}


@worker_task(task_definition_name="put_back_stock")
def put_back_stock(order_id: str, lines: list[dict]) -> dict:
    """Restore the stock of an order that is not sent. The worker is idempotent."""
    return {"order_id": order_id, "put_back": sum(line["quantity"] for line in lines)}


@worker_task(task_definition_name="notify_customer", thread_count=2)
def notify_customer(email: str, subject: str) -> dict:
    """Send a message to the customer."""
    return {"to": email, "subject": subject}
