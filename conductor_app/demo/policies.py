"""Task definitions: timeouts, retries and limits of each task."""

from conductor.client.http.models.task_def import TaskDef

OWNER = "warehouse@example.com"


def task_definitions() -> list[TaskDef]:
    """Return the definitions of all tasks of workers. Registering them again replaces them."""
    return [
        task_definition("screen_for_fraud", "Ask the fraud service for a score."),
        task_definition("pick_item", "Pick one line of an order.", limit=8),
        task_definition("pack_parcel", "Pack a parcel.", seconds=600),
        task_definition("charge_card", "Charge the customer's card."),
        task_definition("book_courier", "Book a courier, whose server is sometimes down.", retries=5, delays="growing"),
        task_definition("track_parcel", "Ask the courier where the parcel is."),
        task_definition("put_back_stock", "Restore the stock of a failed order."),
        task_definition("notify_customer", "Notify the customer."),
    ]


def task_definition(
    name: str, purpose: str, *, seconds: int = 60, retries: int = 3, delays: str = "equal", limit: int | None = None
) -> TaskDef:
    """Return a task that is retried after 1 s, or after 1, 2, 4 … s, with a response timeout of 10 s."""
    return TaskDef(
        name=name,
        description=purpose,
        owner_email=OWNER,
        retry_count=retries,
        retry_logic="EXPONENTIAL_BACKOFF" if delays == "growing" else "FIXED",
        retry_delay_seconds=1,
        timeout_seconds=seconds,
        timeout_policy="TIME_OUT_WF",
        response_timeout_seconds=10,
        concurrent_exec_limit=limit,
    )
