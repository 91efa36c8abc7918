"""Notifications about new work. They may be lost, so the queues of waiting polls are also read every second."""

from .channel import announce, count_waiting, is_closing, on_announce, prepare_backend, subscribe, wake_all_and_close
from .waiters import WAITERS, Waiter, WaiterRegistry, always_connected, broadcast_topic

__all__ = [
    "WAITERS",
    "Waiter",
    "WaiterRegistry",
    "always_connected",
    "announce",
    "broadcast_topic",
    "count_waiting",
    "is_closing",
    "on_announce",
    "prepare_backend",
    "subscribe",
    "wake_all_and_close",
]
