"""Results of the runs of a bulk operation: two statements per item, in the transaction of its run."""

from .statements import execute

COUNTERS = {"DONE": "done", "REFUSED": "refused"}


def record_item(operation_id: str, state: str, item_id: int, outcome: str, answer: str, now: int) -> bool:
    """Record the result of an item. Returns False if the operation is in another state, or the item is done.

    The operation is locked first, as in every command: another order could deadlock.
    """
    counter = COUNTERS[outcome]
    counted = f"UPDATE conductor_bulkoperation SET {counter} = {counter} + 1 WHERE id = %s AND state = %s"
    noted = "UPDATE conductor_bulkitem SET outcome = %s, answer = %s, at = %s WHERE id = %s AND outcome = 'WAITING'"
    return bool(execute(counted, [operation_id, state]) and execute(noted, [outcome, answer, now, item_id]))
