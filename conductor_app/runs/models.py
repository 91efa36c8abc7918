"""Tables of runs: runs, tasks, attempts, labels, history, logs, messages, cached results and retention."""

from typing import Any, ClassVar, Self

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Aggregate, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.expressions import RawSQL
from django.db.models.sql.compiler import SQLCompiler

from ..core.snapshot import NEVER
from ..core.states import ATTEMPT, RUN, TASK, StateMachine
from ..db.fields import DocumentField, IdField, MomentField, UserKeyField
from ..utils.formatting import format_task_name

TASK_ONLY_STATUSES = ["COMPLETED_WITH_ERRORS", "SKIPPED"]


def status_in(statuses: frozenset[str]) -> Q:
    return Q(status__in=sorted(statuses))


def ended_at_matches_status(machine: StateMachine, name: str) -> models.CheckConstraint:
    """Return a CHECK constraint: the end time is set if and only if the status is final."""
    ended = Q(ended_at__isnull=False)
    return models.CheckConstraint(
        name=name, condition=(status_in(machine.final) & ended) | (status_in(machine.open) & ~ended)
    )


def run_duration_ms(created_at: int, ended_at: int | None, idle_ms: int, now: int) -> int:
    """Return how long a run was open, until now if it still is: without the time between an end and a retry or rerun.

    A restart begins a new duration.
    """
    return max((now if ended_at is None else ended_at) - created_at - idle_ms, 0)


IS_TO_TRACE = Q(ended_at__isnull=False, traceparent__isnull=False) & (
    Q(traced_at__isnull=True) | Q(traced_at__lt=F("ended_at"))
)


class RunQuerySet(models.QuerySet):
    """Queries for runs."""

    def open(self) -> Self:
        return self.filter(status_in(RUN.open))

    def of_definition(self, name: str) -> Self:
        return self.filter(name=name)

    def defer_payloads(self) -> Self:
        return self.defer("input", "output", "variables")


class Run(models.Model):
    """One execution of a workflow definition."""

    access_names: ClassVar[dict[str, str]] = {"WORKFLOW_DEF": "name", "WORKFLOW": "id"}

    # Set by queries and commands that load more than the row.
    usual: Any
    slow_ms: int | None
    failure: Any
    definition_pk: Any
    has_model_calls: bool
    parent_keys: Any
    current_step: Any
    label_names: str

    id = IdField(primary_key=True)
    name = models.CharField("definition", max_length=255)
    version = models.IntegerField(default=1)
    resolved_definition = models.ForeignKey(
        "conductor.ResolvedDefinition", on_delete=models.PROTECT, db_constraint=False, db_index=False
    )
    status = models.CharField(max_length=16)
    reason = models.TextField(default="", blank=True)
    correlation_id = models.CharField(max_length=512, default="", blank=True)
    priority = models.SmallIntegerField(default=0)
    created_at = MomentField()
    updated_at = MomentField(default=0)
    ended_at = MomentField(null=True)
    last_retried_at = MomentField(default=0)
    idle_ms = models.BigIntegerField(default=0, db_default=0)
    # When the run last failed or timed out before a retry, rerun or restart; null for nearly every run.
    failed_before_at = MomentField(null=True)
    wake_at = MomentField(default=NEVER)
    revision = models.IntegerField(default=0)
    next_seq = models.IntegerField(default=1)
    has_skips = models.BooleanField(default=False)
    parent_id = IdField(default="", blank=True)
    parent_attempt_id = IdField(default="", blank=True)
    root_id = IdField(default="", db_default="", blank=True)
    depth = models.IntegerField(default=0, db_default=0)
    # The user whose permissions the run has, without a foreign key: a deleted user has no permissions. 0: no limit.
    starter_id = UserKeyField(default=0, db_default=0)
    failed_attempt_id = IdField(default="", blank=True)
    failed_refs = DocumentField(default=list)
    failed_names = DocumentField(default=list)
    domains = DocumentField(default=dict)
    inbox = models.IntegerField(default=0)
    # Breakpoints and stops (core/breakpoints.py); null for nearly every run.
    debug = DocumentField(null=True, blank=True)
    limit_key = models.CharField(max_length=512, default="", blank=True)
    # The fairness key of its tasks and the weight of the key; null for runs without one.
    fairness = DocumentField(null=True, blank=True)
    is_held = models.BooleanField(default=False)
    started_by = models.CharField(max_length=255, default="", blank=True)
    event = models.CharField(max_length=255, default="", blank=True)
    schedule = models.CharField(max_length=255, default="", blank=True)
    idempotency_key = models.CharField(max_length=255, null=True, blank=True)
    request_id = models.CharField(max_length=255, null=True, blank=True)
    # The trace in which the run was started, null without one, and until when its spans are exported.
    traceparent = models.CharField(max_length=55, null=True, blank=True)
    traced_at = MomentField(null=True)
    # Until when retention keeps a run that was restored from the archive.
    kept_until = MomentField(null=True)
    watched_as = IdField(default="", blank=True)
    watched_until = MomentField(default=0)
    input = DocumentField(default=dict)
    output = DocumentField(default=dict)
    variables = DocumentField(default=dict)
    input_size = models.IntegerField(default=0)
    output_size = models.IntegerField(default=0)
    input_path = models.CharField(max_length=255, default="", blank=True)
    output_path = models.CharField(max_length=255, default="", blank=True)
    variables_size = models.IntegerField(default=0)

    objects = RunQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(name="run_status_is_known", condition=status_in(RUN.statuses)),
            ended_at_matches_status(RUN, "run_has_ended_exactly_when_final"),
            models.UniqueConstraint(
                name="one_run_per_idempotency_key",
                # The key comes first, because some queries search it without a name.
                fields=["idempotency_key", "name"],
                condition=Q(idempotency_key__isnull=False),
            ),
            models.UniqueConstraint(
                name="one_run_per_request",
                fields=["name", "request_id"],
                condition=Q(request_id__isnull=False),
            ),
        ]
        indexes = [
            # Rarely filtered columns have no separate index. They are part of an index that the query scans in order.
            models.Index(
                name="run_by_start", fields=["-created_at", "id", "parent_id", "version", "priority", "started_by"]
            ),
            models.Index(name="run_by_definition", fields=["name", "-created_at", "version", "status"]),
            models.Index(name="run_by_version", fields=["name", "version", "-created_at"]),
            models.Index(name="run_by_status", fields=["status", "-created_at"]),
            models.Index(name="run_by_creator", fields=["started_by", "-created_at"]),
            models.Index(
                name="run_by_correlation", fields=["correlation_id", "-created_at"], condition=~Q(correlation_id="")
            ),
            models.Index(name="run_by_parent", fields=["parent_id", "-created_at"], condition=~Q(parent_id="")),
            models.Index(name="open_run_by_root", fields=["root_id"], condition=status_in(RUN.open) & ~Q(root_id="")),
            models.Index(
                name="open_run_by_starter", fields=["starter_id"], condition=status_in(RUN.open) & ~Q(starter_id=0)
            ),
            models.Index(name="run_by_event", fields=["event", "-created_at"], condition=~Q(event="")),
            models.Index(name="run_by_limit_key", fields=["limit_key", "-created_at"], condition=~Q(limit_key="")),
            models.Index(name="run_with_reason_by_start", fields=["-created_at", "name"], condition=~Q(reason="")),
            models.Index(name="run_with_failures", fields=["-created_at"], condition=~Q(failed_refs=[])),
            models.Index(name="run_by_end", fields=["ended_at", "status"], condition=Q(ended_at__isnull=False)),
            models.Index(
                name="run_failed_before", fields=["failed_before_at"], condition=Q(failed_before_at__isnull=False)
            ),
            models.Index(name="run_by_schedule", fields=["schedule"], condition=status_in(RUN.open) & ~Q(schedule="")),
            models.Index(name="run_of_schedule", fields=["schedule", "-created_at"], condition=~Q(schedule="")),
            models.Index(name="run_with_breakpoints", fields=["-id"], condition=Q(debug__isnull=False)),
            models.Index(name="run_to_trace", fields=["ended_at"], condition=IS_TO_TRACE),
            models.Index(name="run_to_wake", fields=["wake_at"], condition=status_in(RUN.open)),
            models.Index(
                name="run_by_limit",
                fields=["name", "limit_key", "created_at"],
                condition=status_in(RUN.open) & ~Q(limit_key=""),
            ),
        ]

    def __str__(self) -> str:
        return self.id

    def begins_later(self, now: int) -> bool:
        """Return True if the run has a start time that is not reached yet."""
        return self.next_seq == 1 and now < self.created_at

    def duration_ms(self, now: int) -> int:
        """Return the duration in milliseconds, until now if the run is open."""
        return run_duration_ms(self.created_at, self.ended_at, self.idle_ms, now)


class TaskQuerySet(models.QuerySet):
    """Queries for tasks."""

    def open(self) -> Self:
        return self.filter(status_in(TASK.open))


class Task(models.Model):
    """A task of a run: a step reached in one iteration of each enclosing loop."""

    access_names: ClassVar[dict[str, str]] = {"WORKFLOW_DEF": "run__name", "WORKFLOW": "run_id"}

    id = IdField(primary_key=True)
    # A standalone task has no run: see groups.py.
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="tasks", db_index=False, db_constraint=False, null=True
    )
    ref = models.CharField(max_length=512)
    iteration_path = models.CharField(max_length=128, default="", blank=True)
    name = models.CharField(max_length=512)
    type = models.CharField(max_length=255)
    status = models.CharField(max_length=24)
    seq = models.IntegerField()
    created_at = MomentField()
    attempt_id = IdField()
    iteration = models.IntegerField(default=0)
    loop_ref = models.CharField(max_length=512, default="", blank=True)
    joined_by = models.CharField(max_length=512, default="", blank=True)
    branch_head = models.CharField(max_length=640, default="", blank=True)
    is_permissive = models.BooleanField(default=False)
    step_state = DocumentField(default=dict)

    objects = TaskQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(name="task_status_is_known", condition=status_in(TASK.statuses)),
            models.UniqueConstraint(
                name="one_task_per_run_ref_and_iteration_path", fields=["run", "ref", "iteration_path"]
            ),
        ]
        indexes = [
            models.Index(name="task_open", fields=["run"], condition=status_in(TASK.open)),
            models.Index(name="task_of_people", fields=["status", "created_at"], condition=Q(type="HUMAN")),
            models.Index(name="task_ended_oddly", fields=["status"], condition=Q(status__in=TASK_ONLY_STATUSES)),
            models.Index(
                name="task_joined", fields=["run", "joined_by", "iteration_path", "status"], condition=~Q(joined_by="")
            ),
            models.Index(name="task_in_loop", fields=["run", "loop_ref", "iteration_path"], condition=~Q(loop_ref="")),
        ]

    def __str__(self) -> str:
        if self.run_id is None:
            return self.name
        return "__".join([self.ref, *filter(None, self.iteration_path.split("."))])

    @property
    def label(self) -> str:
        """Return the name of the task in sentences: `scan, iteration 2`."""
        return format_task_name(self.ref, self.iteration_path) if self.iteration_path else str(self)


IS_OPEN_ATTEMPT = status_in(ATTEMPT.open) & ~Q(id="")
"""The condition of the index on open attempts. `~Q(id="")` keeps PostgreSQL from claiming by this index: after an
ANALYZE while all queues were empty, each claim would read all open attempts and sort them."""


class AttemptQuerySet(models.QuerySet):
    """Queries for attempts."""

    def open(self) -> Self:
        """Return the attempts that have not ended, with the condition of the index on them."""
        return self.filter(IS_OPEN_ATTEMPT)

    def pending(self, queue: str | None = None) -> Self:
        pending = self.filter(status="PENDING").exclude(queue="")
        return pending if queue is None else pending.filter(queue=queue)

    def leased(self, queue: str | None = None) -> Self:
        """Return the claimed attempts, with the condition of the index on them."""
        leased = self.filter(status="LEASED").exclude(queue="")
        return leased if queue is None else leased.filter(queue=queue)

    def of_runs(self) -> Self:
        """Return the attempts of runs, without those of standalone tasks."""
        return self.filter(run__isnull=False)

    def defer_payloads(self) -> Self:
        return self.defer("input", "output")


class Attempt(models.Model):
    """One try at a task, with its worker, its lease and its result."""

    access_names: ClassVar[dict[str, str]] = {"WORKFLOW_DEF": "run__name", "WORKFLOW": "run_id"}

    # Set by queries and commands that load more than the row.
    has_masked_values: bool
    masked: list[str]
    small_input: Any

    id = IdField(primary_key=True)
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="attempts", db_index=False, db_constraint=False, null=True
    )
    task = models.ForeignKey(
        Task, on_delete=models.CASCADE, related_name="attempts", db_index=False, db_constraint=False
    )
    number = models.IntegerField(default=0)
    seq = models.IntegerField()
    status = models.CharField(max_length=24)
    queue = models.CharField(max_length=640, default="", blank=True)
    domain = models.CharField(max_length=128, default="", blank=True)
    name = models.CharField(max_length=512, default="", blank=True)
    priority = models.SmallIntegerField(default=0)
    scheduled_at = MomentField()
    visible_at = MomentField()
    pending_since = MomentField()
    started_at = MomentField(null=True)
    claimed_at = MomentField(null=True)
    updated_at = MomentField(null=True)
    ended_at = MomentField(null=True)
    lease_ends_at = MomentField(null=True)
    due_at = MomentField(default=NEVER)
    ends_at = MomentField(default=NEVER)
    total_ends_at = MomentField(default=NEVER)
    lease_ms = models.BigIntegerField(default=0)
    timeout_ms = models.BigIntegerField(default=0)
    delay_ms = models.BigIntegerField(default=0)
    callback_ms = models.BigIntegerField(default=0)
    concurrent_limit = models.IntegerField(default=0)
    rate_count = models.IntegerField(default=0)
    rate_seconds = models.IntegerField(default=1)
    publishes_start = models.BooleanField(default=False)
    poll_count = models.IntegerField(default=0)
    worker = models.CharField(max_length=255, default="", blank=True)
    reason = models.TextField(default="", blank=True)
    previous_id = IdField(default="", blank=True)
    child_id = IdField(default="", blank=True)
    input = DocumentField(default=dict)
    output = DocumentField(default=dict)
    input_size = models.IntegerField(default=0)
    output_size = models.IntegerField(default=0)
    input_path = models.CharField(max_length=255, default="", blank=True)
    output_path = models.CharField(max_length=255, default="", blank=True)
    cause = models.CharField(max_length=16, default="", db_default="", blank=True)
    fairness_key = models.CharField(max_length=255, default="", db_default="", blank=True)
    fairness_weight = models.FloatField(default=1.0, db_default=1.0)

    objects = AttemptQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(name="attempt_status_is_known", condition=status_in(ATTEMPT.statuses)),
            ended_at_matches_status(ATTEMPT, "attempt_has_ended_exactly_when_final"),
            models.UniqueConstraint(name="one_open_attempt_per_task", fields=["task"], condition=IS_OPEN_ATTEMPT),
            models.UniqueConstraint(name="one_attempt_per_task_and_number", fields=["task", "number"]),
        ]
        indexes = [
            models.Index(name="attempt_of_run", fields=["run", "seq"]),
            # Ids are time-ordered, so these indexes list the newest first.
            models.Index(name="attempt_by_name", fields=["name", "id"]),
            models.Index(name="attempt_by_domain", fields=["domain", "id"], condition=~Q(domain="")),
            models.Index(
                name="attempt_ended_badly", fields=["status", "id"], condition=status_in(ATTEMPT.final - {"COMPLETED"})
            ),
            models.Index(
                name="attempt_bad_by_name", fields=["name", "id"], condition=status_in(ATTEMPT.final - {"COMPLETED"})
            ),
            models.Index(
                name="attempt_to_claim",
                fields=["queue", "-priority", "visible_at", "id"],
                condition=Q(status="PENDING") & ~Q(queue=""),
            ),
            models.Index(
                name="attempt_by_fairness_key",
                fields=["queue", "-priority", "fairness_key", "visible_at", "id"],
                condition=Q(status="PENDING") & ~Q(queue="") & ~Q(fairness_key=""),
            ),
            # Most pending attempts have no timer.
            models.Index(
                name="attempt_with_timer", fields=["due_at"], condition=status_in(ATTEMPT.open) & Q(due_at__lt=NEVER)
            ),
            models.Index(name="attempt_leased", fields=["name"], condition=Q(status="LEASED") & ~Q(queue="")),
            # For the lists of standalone tasks by age and by worker.
            models.Index(
                name="attempt_waiting_standalone",
                fields=["queue", "scheduled_at", "id"],
                condition=Q(status="PENDING", run__isnull=True),
            ),
            models.Index(
                name="attempt_leased_standalone",
                fields=["queue", "claimed_at", "id"],
                condition=Q(status="LEASED", run__isnull=True),
            ),
            models.Index(
                name="attempt_standalone_by_worker",
                fields=["queue", "worker", "-claimed_at", "-id"],
                condition=Q(run__isnull=True) & ~Q(worker=""),
            ),
            models.Index(name="attempt_by_claim", fields=["name", "claimed_at"], condition=Q(rate_count__gt=0)),
        ]

    @property
    def own_run(self) -> Run:
        """Return the run of an attempt that does not belong to a standalone task."""
        assert self.run is not None
        return self.run

    def __str__(self) -> str:
        return self.id


MAX_LABEL_LENGTH = 64


class JoinedTexts(Aggregate):
    """Aggregate that joins texts with commas, which labels cannot contain."""

    function = "GROUP_CONCAT"
    template = "%(function)s(%(expressions)s, ',')"
    output_field = models.TextField()

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any) -> Any:
        return self.as_sql(compiler, connection, function="STRING_AGG", **extra)


class RunLabel(models.Model):
    """One label of one run."""

    access_names: ClassVar[dict[str, str]] = {"WORKFLOW_DEF": "run__name", "WORKFLOW": "run_id"}

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="labels", db_index=False)
    name = models.CharField(max_length=MAX_LABEL_LENGTH)

    class Meta:
        constraints = [models.UniqueConstraint(name="one_label_of_a_name_per_run", fields=["run", "name"])]
        # Ids of runs are time-ordered, so this index lists the newest runs of a label.
        indexes = [models.Index(name="run_label_by_name", fields=["name", "run"])]

    def __str__(self) -> str:
        return self.name


def with_labels(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Annotate the runs with their labels as one text, `label_names`."""
    labels = RunLabel.objects.filter(run=OuterRef("pk")).order_by().values("run").annotate(all=JoinedTexts("name"))
    # Run declares `label_names`, because callers get plain runs.
    return runs.annotate(label_names=Subquery(labels.values("all")))  # type: ignore[no-redef]  # see above


class HistoryEntry(models.Model):
    """One decision: its effects, its author and its reason."""

    access_names: ClassVar[dict[str, str]] = {"WORKFLOW_DEF": "run__name", "WORKFLOW": "run_id"}

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="history", db_index=False, db_constraint=False)
    revision = models.IntegerField()
    at = MomentField()
    by = models.CharField(max_length=255, default="", blank=True)
    reason = models.TextField(default="", blank=True)
    effects = DocumentField(default=list)

    class Meta:
        verbose_name_plural = "history entries"
        indexes = [models.Index(name="history_of_run", fields=["run", "revision"])]


class TaskLog(models.Model):
    """A log line that a worker wrote for an attempt, which need not exist."""

    attempt_id = IdField()
    at = MomentField()
    line = models.TextField()

    class Meta:
        indexes = [models.Index(name="log_of_attempt", fields=["attempt_id", "at", "id"])]


class InboxMessage(models.Model):
    """A message in the inbox of a run, which counts its messages."""

    access_names: ClassVar[dict[str, str]] = {"WORKFLOW_DEF": "run__name", "WORKFLOW": "run_id"}

    number = models.BigAutoField(primary_key=True)
    id = IdField()
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="inbox_messages", db_index=False)
    received_at = MomentField()
    payload = DocumentField(default=dict)

    class Meta:
        indexes = [models.Index(name="inbox_of_run", fields=["run", "number"])]

    def __str__(self) -> str:
        return self.id


class CachedResult(models.Model):
    """The attempt or the run whose result is cached under a name and a key. The row is deleted with the run."""

    name = models.CharField(max_length=255)
    digest = models.CharField(max_length=64)
    attempt_id = IdField()
    run_id = IdField(default="", db_default="", blank=True)
    expires_at = MomentField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(name="one_result_per_key", fields=["digest", "name"])]

    def __str__(self) -> str:
        return f"{self.name} {self.digest}"


class RetentionPolicy(models.Model):
    """The retention of the runs of one definition, or of all definitions without their own policy (empty name).

    `days`: the days after which ended runs are deleted, 0 for never. `failed_days`: the days for failed runs.
    `keep_last`: the number of newest runs that are never deleted.
    """

    definition = models.CharField(max_length=255, unique=True, blank=True)
    days = models.IntegerField()
    failed_days = models.IntegerField()
    keep_last = models.IntegerField(default=0)
    changed_at = MomentField()
    by = models.CharField(max_length=255)

    class Meta:
        verbose_name_plural = "retention policies"

    def __str__(self) -> str:
        return self.definition or "all others"


class DailyStorage(models.Model):
    """The storage of one day: the last measured size of the database, and the number of runs that retention deleted."""

    day_at = MomentField(primary_key=True)
    bytes = models.BigIntegerField(default=0)
    removed = models.IntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.bytes} bytes"


PUBLISH = "publish"
"""The subject of messages to other systems. Built-in workers send them, because a sweep must not wait for a network."""

ALERT = "alert"
"""The sink of alerts. The message contains the address, a webhook or a mailbox."""
LISTENER, TASK_LISTENER = "listener", "task listener"
"""The sinks of notifications to the configured listeners, for runs and for tasks."""

ABOUT_GROUP = "group"
"""The subject of messages about a task group whose tasks may all be resolved."""


OVERDUE_RUN, OVERDUE_TASK = "overdue", "overdue_task"
"""The subjects of messages about a run or a standalone task whose due timers could not be handled. Such a message
contains the error and the tries. It is deleted after the next try, unless that fails too."""
IS_OVERDUE = f"subject IN ('{OVERDUE_RUN}', '{OVERDUE_TASK}')"
UNLISTED_TRIES = 2
"""The number of failed tries before a due timer is listed, so that a fault of the moment is not."""


class MessageQuerySet(models.QuerySet["Message"]):
    """Messages, and those that could not be delivered."""

    def undelivered(self) -> Self:
        """Return the messages that are not tried again unless an operator retries them, and those about due timers."""
        # SQLite uses a partial index only if the query repeats the condition of the index literally.
        condition = f"(due_at = {NEVER} OR ({IS_OVERDUE} AND tries > {UNLISTED_TRIES}))"
        return self.filter(RawSQL(condition, (), output_field=models.BooleanField()))


class Message(models.Model):
    """A message to a run, a sink or a task group (`to`), or about a limit (`to` is empty).

    A message without further tries is never due (`due_at` is NEVER), and `error` has the reason.
    """

    run_id_field: ClassVar[str] = "to"

    # Set by queries and commands that load more than the row.
    written: Any

    to = IdField(default="", blank=True)
    subject = models.CharField(max_length=32)
    facts = DocumentField(default=dict)
    sent_at = MomentField()
    due_at = MomentField()
    tries = models.IntegerField(default=0)
    error = models.TextField(default="", blank=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(name="message_due", fields=["due_at", "id"], condition=~models.Q(subject=PUBLISH)),
            models.Index(name="message_to_publish", fields=["due_at", "id"], condition=models.Q(subject=PUBLISH)),
            models.Index(name="message_to_terminate", fields=["to"], condition=models.Q(subject="terminate")),
            models.Index(name="message_about_group", fields=["to"], condition=models.Q(subject=ABOUT_GROUP)),
            models.Index(
                name="message_overdue", fields=["to"], condition=models.Q(subject__in=[OVERDUE_RUN, OVERDUE_TASK])
            ),
            models.Index(name="message_undelivered", fields=["to", "id"], condition=models.Q(due_at=NEVER)),
        ]

    def __str__(self) -> str:
        return f"{self.subject} to {self.to or 'the engine'}"


class PulseMessage(models.Model):
    """A message about a standalone task or a task group, written in the transaction of the change.

    If an exchange is configured, messages are sent there, in order per task, and then deleted. Otherwise they are
    deleted with their task.
    """

    task_id = IdField(default="", blank=True)
    group_id = IdField()
    name = models.CharField(max_length=40)
    key = models.CharField(max_length=400)
    routes = DocumentField(default=list)
    payload = DocumentField(default=dict)
    sent_at = MomentField()
    due_at = MomentField(default=NEVER)
    tries = models.IntegerField(default=0)
    error = models.TextField(default="", blank=True)

    class Meta:
        indexes = [
            models.Index(name="notice_of_task", fields=["task_id", "group_id", "id"]),
            models.Index(name="notice_of_group", fields=["group_id", "id"]),
            models.Index(name="notice_due", fields=["due_at", "id"], condition=models.Q(due_at__lt=NEVER)),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.task_id or self.group_id}"
