"""What came of the runs of an operation: two statements an item, since they stand in the transaction of its run."""

from .statements import execute

COUNTERS = {"DONE": "done", "REFUSED": "refused"}


def record_item(operation_id: str, state: str, item_id: int, outcome: str, answer: str, now: int) -> bool:
    """Count it and note it; False where the operation is no longer in that state, or the item does not wait.

    The operation comes first, as in every command: two that took the rows in turn would wait for each other.
    """
    counter = COUNTERS[outcome]
    counted = f"UPDATE conductor_bulkoperation SET {counter} = {counter} + 1 WHERE id = %s AND state = %s"
    noted = "UPDATE conductor_bulkitem SET outcome = %s, answer = %s, at = %s WHERE id = %s AND outcome = 'WAITING'"
    return bool(execute(counted, [operation_id, state]) and execute(noted, [outcome, answer, now, item_id]))
