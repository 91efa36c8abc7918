"""Tables, and the QuerySets that read them."""

from .access import AccessKey, AccessRevision, Application, Grant, GroupFacts, Profile, Tag
from .audit import AuditEntry
from .clients import Client, ScopeRole
from .definitions import Catalogue, Plan, TaskDefinition, WorkflowDefinition
from .events import EventAction, EventDelivery, EventHandler, EventVerdict, Webhook
from .failures import Failure, FailureGroup, FailureTally
from .history import HistoryEntry, TaskLog
from .inbox import InboxMessage
from .outbox import Message
from .payloads import PayloadUse, StoredPayload
from .preferences import Preference
from .queues import Poller, SweepPass
from .runs import Attempt, Run, Task
from .schedules import Schedule, ScheduleExecution, Scheduler
from .schemas import SchemaDefinition
from .secrets import Secret, Variable

__all__ = [
    "AccessKey",
    "AccessRevision",
    "Application",
    "Attempt",
    "AuditEntry",
    "Catalogue",
    "Client",
    "EventAction",
    "EventDelivery",
    "EventHandler",
    "EventVerdict",
    "Failure",
    "FailureGroup",
    "FailureTally",
    "Grant",
    "GroupFacts",
    "HistoryEntry",
    "InboxMessage",
    "Message",
    "PayloadUse",
    "Plan",
    "Poller",
    "Preference",
    "Profile",
    "Run",
    "Schedule",
    "ScheduleExecution",
    "Scheduler",
    "SchemaDefinition",
    "ScopeRole",
    "Secret",
    "StoredPayload",
    "SweepPass",
    "Tag",
    "Task",
    "TaskDefinition",
    "TaskLog",
    "Variable",
    "Webhook",
    "WorkflowDefinition",
]
