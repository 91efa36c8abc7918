"""Notifications about new work. Each may be lost: waiting polls read their queue again within a second."""

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
