"""Notifications about new work. A notification may be lost, so waiting polls also read their queue every second."""

from .channel import announce, count_waiting, is_closing, on_announce, prepare_backend, subscribe, wake_all_and_close
from .waiters import broadcast_topic

__all__ = [
    "announce",
    "broadcast_topic",
    "count_waiting",
    "is_closing",
    "on_announce",
    "prepare_backend",
    "subscribe",
    "wake_all_and_close",
]
