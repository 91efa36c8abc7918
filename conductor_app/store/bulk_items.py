"""Storage of the results of a bulk operation: two statements per item, in the transaction of its run."""

from .statements import execute

COUNTERS = {"DONE": "done", "REFUSED": "refused"}


def record_item(operation_id: str, state: str, item_id: int, outcome: str, answer: str, now: int) -> bool:
    """Record the result of an item. Returns False if the operation is in another state, or the item has a result.

    The operation is locked before the item, as in every command: another order could cause a deadlock.
    """
    counter = COUNTERS[outcome]
    operation_sql = f"UPDATE conductor_bulkoperation SET {counter} = {counter} + 1 WHERE id = %s AND state = %s"
    item_sql = "UPDATE conductor_bulkitem SET outcome = %s, answer = %s, at = %s WHERE id = %s AND outcome = 'WAITING'"
    return bool(execute(operation_sql, [operation_id, state]) and execute(item_sql, [outcome, answer, now, item_id]))
