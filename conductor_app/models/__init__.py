"""Tables, and the QuerySets that read them."""

from .access import AccessKey, AccessRevision, Application, Grant, GroupProfile, Tag, UserProfile
from .applied_definitions import AppliedDefinition
from .artifacts import Artifact
from .audit import AuditEntry
from .bulk import BulkItem, BulkOperation
from .clients import Client, ScopeRole
from .definitions import DefinitionRevision, ResolvedDefinition, TaskDefinition, WorkflowDefinition
from .drafts_and_cases import DefinitionDraft, SaveRequirement, SimulationCase
from .duration_baselines import DurationBaseline
from .events import EventAction, EventDelivery, EventHandler, EventListener, HandlerEvaluation, Webhook
from .failures import Failure, FailureGroup, HourlyFailureCount
from .files import FileHandle
from .form_templates import FormTemplate
from .groups import Dependency, GroupWatch, PendingApproval, StandaloneTask, TaskGroup
from .history import HistoryEntry, TaskLog
from .human_tasks import HumanTask
from .inbox import InboxMessage
from .integrations import Integration, IntegrationModel, Prompt
from .labels import RunLabel
from .leases import Lease
from .model_calls import BudgetHold, ModelBudget, ModelCall, ModelUsage
from .outbox import Message, PulseMessage
from .payloads import PayloadReference, StoredPayload
from .preferences import DigestSubscription, Preference
from .queues import MinuteCount, Poller, Queue, QueueHold, SweepPass, Worker, WorkerHold
from .quotas import CallerQuota, TokenBucket
from .results import CachedResult
from .retention import DailyStorage, RetentionPolicy
from .runs import Attempt, Run, Task
from .schedules import Schedule, ScheduleExecution, Scheduler
from .schemas import SchemaDefinition
from .secrets import Secret, Variable
from .server_clocks import ServerClock
from .sign_in import ExternalIdentity, RecoveryCode, SecondFactor
from .vectors import VectorDocument, VectorIndexVersion
from .views import Alert, AlertFiring, AlertTarget, SavedView
from .webhook_waits import WebhookPaths, WebhookWait
from .workflow_tests import WorkflowTest

__all__ = [
    "AccessKey",
    "AccessRevision",
    "Alert",
    "AlertFiring",
    "AlertTarget",
    "Application",
    "AppliedDefinition",
    "Artifact",
    "Attempt",
    "AuditEntry",
    "BudgetHold",
    "BulkItem",
    "BulkOperation",
    "CachedResult",
    "CallerQuota",
    "Client",
    "DailyStorage",
    "DefinitionDraft",
    "DefinitionRevision",
    "Dependency",
    "DigestSubscription",
    "DurationBaseline",
    "EventAction",
    "EventDelivery",
    "EventHandler",
    "EventListener",
    "ExternalIdentity",
    "Failure",
    "FailureGroup",
    "FileHandle",
    "FormTemplate",
    "Grant",
    "GroupProfile",
    "GroupWatch",
    "HandlerEvaluation",
    "HistoryEntry",
    "HourlyFailureCount",
    "HumanTask",
    "InboxMessage",
    "Integration",
    "IntegrationModel",
    "Lease",
    "Message",
    "MinuteCount",
    "ModelBudget",
    "ModelCall",
    "ModelUsage",
    "PayloadReference",
    "PendingApproval",
    "Poller",
    "Preference",
    "Prompt",
    "PulseMessage",
    "Queue",
    "QueueHold",
    "RecoveryCode",
    "ResolvedDefinition",
    "RetentionPolicy",
    "Run",
    "RunLabel",
    "SaveRequirement",
    "SavedView",
    "Schedule",
    "ScheduleExecution",
    "Scheduler",
    "SchemaDefinition",
    "ScopeRole",
    "SecondFactor",
    "Secret",
    "ServerClock",
    "SimulationCase",
    "StandaloneTask",
    "StoredPayload",
    "SweepPass",
    "Tag",
    "Task",
    "TaskDefinition",
    "TaskGroup",
    "TaskLog",
    "TokenBucket",
    "UserProfile",
    "Variable",
    "VectorDocument",
    "VectorIndexVersion",
    "Webhook",
    "WebhookPaths",
    "WebhookWait",
    "Worker",
    "WorkerHold",
    "WorkflowDefinition",
    "WorkflowTest",
]
