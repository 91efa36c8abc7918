"""Tables, and the QuerySets that read them."""

from .access import AccessKey, AccessRevision, Application, Grant, GroupFacts, Profile, Tag
from .artifacts import Artifact
from .audit import AuditEntry
from .authoring import CaseRule, DefinitionDraft, SimulationCase
from .bulk import BulkItem, BulkOperation
from .clients import Client, ScopeRole
from .definitions import Catalogue, Plan, TaskDefinition, WorkflowDefinition
from .events import EventAction, EventDelivery, EventHandler, EventListener, EventVerdict, Webhook
from .failures import Failure, FailureGroup, FailureTally
from .files import FileHandle
from .form_templates import FormTemplate
from .groups import Dependency, Group, GroupWatch, HeldAct, Solo
from .history import HistoryEntry, TaskLog
from .inbox import InboxMessage
from .labels import RunLabel
from .outbox import Message, Notice
from .payloads import PayloadUse, StoredPayload
from .people import PersonsTask
from .preferences import Preference
from .queues import Poller, Queue, QueueHold, SweepPass, Tally, Worker, WorkerHold
from .results import CachedResult
from .retention import RetentionPolicy, StoredDay
from .runs import Attempt, Run, Task
from .schedules import Schedule, ScheduleExecution, Scheduler
from .schemas import SchemaDefinition
from .secrets import Secret, Variable
from .usual import UsualDuration
from .views import Alert, Ring, SavedView
from .webhook_waits import WebhookPaths, WebhookWait
from .workflow_tests import WorkflowTest

__all__ = [
    "AccessKey",
    "AccessRevision",
    "Alert",
    "Application",
    "Artifact",
    "Attempt",
    "AuditEntry",
    "BulkItem",
    "BulkOperation",
    "CachedResult",
    "CaseRule",
    "Catalogue",
    "Client",
    "DefinitionDraft",
    "Dependency",
    "EventAction",
    "EventDelivery",
    "EventHandler",
    "EventListener",
    "EventVerdict",
    "Failure",
    "FailureGroup",
    "FailureTally",
    "FileHandle",
    "FormTemplate",
    "Grant",
    "Group",
    "GroupFacts",
    "GroupWatch",
    "HeldAct",
    "HistoryEntry",
    "InboxMessage",
    "Message",
    "Notice",
    "PayloadUse",
    "PersonsTask",
    "Plan",
    "Poller",
    "Preference",
    "Profile",
    "Queue",
    "QueueHold",
    "RetentionPolicy",
    "Ring",
    "Run",
    "RunLabel",
    "SavedView",
    "Schedule",
    "ScheduleExecution",
    "Scheduler",
    "SchemaDefinition",
    "ScopeRole",
    "Secret",
    "SimulationCase",
    "Solo",
    "StoredDay",
    "StoredPayload",
    "SweepPass",
    "Tag",
    "Tally",
    "Task",
    "TaskDefinition",
    "TaskLog",
    "UsualDuration",
    "Variable",
    "Webhook",
    "WebhookPaths",
    "WebhookWait",
    "Worker",
    "WorkerHold",
    "WorkflowDefinition",
    "WorkflowTest",
]
