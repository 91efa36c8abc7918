"""Step types: one module each, and the table that finds them."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import DEFAULT_TYPE, STEP_STRUCTURES, Key, Step
from ..effects import Effect
from ..secret_places import mark_secrets
from ..snapshot import Task
from .ai import (
    AiTask,
    CallMcpToolStep,
    ListMcpToolsStep,
    LlmChatComplete,
    LlmGenerateEmbeddings,
    LlmGetEmbeddings,
    LlmIndexText,
    LlmSearchEmbeddings,
    LlmSearchIndex,
    LlmStoreEmbeddings,
    LlmTextComplete,
)
from .base import RunEnding, Simple, StepType
from .decisions import DecisionStep, Noop, SetVariable, Switch, Terminate
from .forks import ExclusiveJoin, ForkJoin, ForkJoinDynamic, Join
from .loops import DoWhile, ForEach, ForEachItem
from .other_runs import GetWorkflowStep, TerminateWorkflowStep, UpdateTaskStep
from .sub_workflows import StartWorkflow, SubWorkflow
from .try_catch import TryCatch
from .waiting import Human, PullWorkflowMessages, Wait, WaitForWebhook, Yield
from .worker_tasks import (
    Dynamic,
    EventStep,
    HttpPollStep,
    HttpStep,
    Inline,
    JdbcStep,
    JsonJqTransform,
    KafkaPublishStep,
    Lambda,
)

STEP_TYPES: dict[str, StepType] = {}


def enter(step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Return the effects of entering a step, as the type that it is executed as.

    Raises:
        StepRefused: when the step cannot be executed.
    """
    executed = step_type_of(step.type).as_executed(step, key, ctx, now)
    effects = step_type_of(executed.type).enter(executed, key, ctx, now)
    return mark_secrets(effects, ctx) if executed.secrets else effects


def run_ending(task: Task) -> RunEnding | None:
    """Return how a task ends its run, if it does."""
    return step_type_of(task.step.type).run_ending(task)


def forked_references(task: Task) -> tuple[str, ...]:
    """Return the references of the dynamic branches that a task has made."""
    return step_type_of(task.step.type).forked_references(task)


def register(step_type: StepType) -> None:
    STEP_TYPES[step_type.type] = step_type
    STEP_STRUCTURES[step_type.type] = step_type


def unregister_ai_types() -> None:
    """Remove the types of AI steps, on a server that does not execute them. Remote workers may poll for their tasks."""
    for step_type in [step_type for step_type in STEP_TYPES.values() if isinstance(step_type, AiTask)]:
        del STEP_TYPES[step_type.type], STEP_STRUCTURES[step_type.type]


def step_type_of(type: str) -> StepType:
    """Return the step type of this name. Workers execute the tasks of a type that is not registered."""
    return STEP_TYPES.get(type) or STEP_TYPES[DEFAULT_TYPE]


for step_type in (
    Simple(),
    Dynamic(),
    Switch(),
    DecisionStep(),
    ForkJoin(),
    ForkJoinDynamic(),
    Join(),
    ExclusiveJoin(),
    DoWhile(),
    EventStep(),
    ForEach(),
    ForEachItem(),
    TryCatch(),
    SubWorkflow(),
    StartWorkflow(),
    Terminate(),
    Wait(),
    WaitForWebhook(),
    Yield(),
    Human(),
    PullWorkflowMessages(),
    SetVariable(),
    Inline(),
    Lambda(),
    JsonJqTransform(),
    Noop(),
    HttpStep(),
    HttpPollStep(),
    JdbcStep(),
    KafkaPublishStep(),
    UpdateTaskStep(),
    GetWorkflowStep(),
    TerminateWorkflowStep(),
    LlmIndexText(),
    LlmStoreEmbeddings(),
    LlmSearchIndex(),
    LlmSearchEmbeddings(),
    LlmGetEmbeddings(),
    LlmTextComplete(),
    LlmChatComplete(),
    LlmGenerateEmbeddings(),
    ListMcpToolsStep(),
    CallMcpToolStep(),
):
    register(step_type)
