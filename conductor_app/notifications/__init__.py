"""Notifications about new work. They may be lost, so the queues of waiting polls are also read every second."""

from .channel import announce, count_waiting, is_closing, on_announce, prepare_backend, subscribe, wake_all_and_close
from .waiters import (
    LOCAL_CALLER,
    WAITERS,
    PendingWait,
    Waiter,
    WaiterRegistry,
    WaitingClient,
    WaitSteps,
    broadcast_topic,
    limit_wait,
    wait_in_thread,
)

__all__ = [
    "LOCAL_CALLER",
    "WAITERS",
    "PendingWait",
    "WaitSteps",
    "Waiter",
    "WaiterRegistry",
    "WaitingClient",
    "announce",
    "broadcast_topic",
    "count_waiting",
    "is_closing",
    "limit_wait",
    "on_announce",
    "prepare_backend",
    "subscribe",
    "wait_in_thread",
    "wake_all_and_close",
]
