"""Queues and workers: polls, pauses, Taskcluster's queues and workers, and the last passes of sweeps."""

from typing import Any, ClassVar

from django.db import models

from ..db.fields import DocumentField, MomentField


class Poller(models.Model):
    """A worker's last poll of one task type in one domain."""

    access_names: ClassVar[dict[str, str]] = {"TASK_DEF": "task_type"}

    task_type = models.CharField(max_length=512)
    domain = models.CharField(max_length=128, default="", blank=True)
    worker = models.CharField(max_length=255, default="", blank=True)
    polled_at = MomentField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="one_poller_per_type_domain_worker", fields=["task_type", "domain", "worker"])
        ]

    def __str__(self) -> str:
        return f"{self.worker} polls {self.task_type}"


class Queue(models.Model):
    """A queue of standalone tasks that workers have polled."""

    name = models.CharField(max_length=128, primary_key=True)
    description = models.TextField(default="", blank=True)
    expires_at = MomentField()
    last_active_at = MomentField()

    class Meta:
        indexes = [models.Index(name="queue_by_expiry", fields=["expires_at"])]

    def __str__(self) -> str:
        return self.name


class Worker(models.Model):
    """A worker that claims standalone tasks from a queue. A quarantined worker gets none."""

    # Set by queries and commands that load more than the row.
    latest: Any

    queue = models.CharField(max_length=128)
    group = models.CharField(max_length=38)
    name = models.CharField(max_length=38)
    first_claim_at = MomentField()
    last_active_at = MomentField(null=True)
    expires_at = MomentField()
    quarantine_until = MomentField(default=0)
    quarantine_log = DocumentField(default=list)

    class Meta:
        constraints = [models.UniqueConstraint(name="one_worker_per_queue", fields=["queue", "group", "name"])]
        indexes = [models.Index(name="worker_by_expiry", fields=["expires_at"])]

    def __str__(self) -> str:
        return f"{self.group}/{self.name}"


class FairShare(models.Model):
    """The turn of a fairness key among the keys of a queue with the same priority.

    `place`: claims serve the key with the lowest place first, and add the cost of each task to it. `served_at`: when a
    task of the key was claimed last, 0 for never.
    """

    queue = models.CharField(max_length=640)
    priority = models.SmallIntegerField()
    key = models.CharField(max_length=255)
    place = models.BigIntegerField()
    served_at = MomentField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="one_share_per_queue_priority_key", fields=["queue", "priority", "key"])
        ]
        indexes = [models.Index(name="share_by_place", fields=["queue", "priority", "place", "served_at"])]

    def __str__(self) -> str:
        return f"{self.key} in {self.queue}"


class SweepPass(models.Model):
    """The last pass of a sweep: its result, its lag, and its error."""

    name = models.CharField(max_length=64, primary_key=True)
    began_at = MomentField(default=0)
    ended_at = MomentField(default=0)
    handled = models.IntegerField(default=0)
    handled_in_all = models.BigIntegerField(default=0)
    worked_at = MomentField(null=True)
    lag_ms = models.BigIntegerField(default=0)
    error = models.TextField(default="", blank=True)
    failed_at = MomentField(null=True)

    def __str__(self) -> str:
        return self.name


class QueueHold(models.Model):
    """A pause of a queue, until a time or without end."""

    queue = models.CharField(max_length=640, primary_key=True)
    until_at = MomentField()
    held_at = MomentField()
    by = models.CharField(max_length=255)
    reason = models.TextField(default="", blank=True)

    def __str__(self) -> str:
        return self.queue


class WorkerHold(models.Model):
    """A drained worker: it gets no new attempts and finishes its current ones."""

    worker = models.CharField(max_length=255, primary_key=True)
    held_at = MomentField()
    by = models.CharField(max_length=255)
    reason = models.TextField(default="", blank=True)

    def __str__(self) -> str:
        return self.worker


class MinuteCount(models.Model):
    """Counts of one minute for a queue or a worker, for pages. They are deleted after some days."""

    QUEUE, WORKER = "queue", "worker"

    kind = models.CharField(max_length=8)
    name = models.CharField(max_length=640)
    at = MomentField()
    scheduled = models.IntegerField(default=0)
    started = models.IntegerField(default=0)
    done = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)
    busy_ms = models.BigIntegerField(default=0)

    class Meta:
        verbose_name_plural = "minute counts"
        constraints = [models.UniqueConstraint(name="one_tally_per_minute", fields=["kind", "name", "at"])]
        indexes = [models.Index(name="tally_by_time", fields=["at"])]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} at {self.at}"
