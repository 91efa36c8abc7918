"""Step types: one module each, and the table that finds them."""

from collections.abc import Iterator

from ..decision_context import DecisionContext
from ..definition import Key, Step
from ..effects import Effect
from ..snapshot import Task
from ..step_structure import DEFAULT_TYPE, STEP_STRUCTURES
from .ai_task import AiTask
from .base import RunEnding, StepType
from .call_mcp_tool import CallMcpToolStep
from .decision import DecisionStep
from .do_while import DoWhile
from .dynamic import Dynamic
from .event import EventStep
from .exclusive_join import ExclusiveJoin
from .for_each import ForEach
from .for_each_item import ForEachItem
from .fork_join import ForkJoin
from .fork_join_dynamic import ForkJoinDynamic
from .http import HttpStep
from .http_poll import HttpPollStep
from .human import Human
from .inline import Inline
from .jdbc import JdbcStep
from .join import Join
from .json_jq_transform import JsonJqTransform
from .kafka_publish import KafkaPublishStep
from .lambda_ import Lambda
from .list_mcp_tools import ListMcpToolsStep
from .llm_chat_complete import LlmChatComplete
from .llm_generate_embeddings import LlmGenerateEmbeddings
from .llm_get_embeddings import LlmGetEmbeddings
from .llm_index_text import LlmIndexText
from .llm_search_embeddings import LlmSearchEmbeddings
from .llm_search_index import LlmSearchIndex
from .llm_store_embeddings import LlmStoreEmbeddings
from .llm_text_complete import LlmTextComplete
from .noop import Noop
from .pull_workflow_messages import PullWorkflowMessages
from .set_variable import SetVariable
from .simple import Simple
from .start_workflow import StartWorkflow
from .sub_workflow import SubWorkflow
from .switch import Switch
from .terminate import Terminate
from .try_catch import TryCatch
from .wait import Wait
from .wait_for_webhook import WaitForWebhook
from .yield_ import Yield

STEP_TYPES: dict[str, StepType] = {}
"""All step types by name."""


def enter(step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Return the effects of entering a step, as the type that it is executed as.

    Raises:
        StepRefused: when the step cannot be executed.
    """
    executed = step_type_of(step.type).as_executed(step, key, ctx, now)
    return step_type_of(executed.type).enter(executed, key, ctx, now)


def run_ending(task: Task) -> RunEnding | None:
    """Return how a task ends its run, if it does."""
    return step_type_of(task.step.type).run_ending(task)


def forked_references(task: Task) -> tuple[str, ...]:
    """Return the references of the dynamic branches that a task has made."""
    return step_type_of(task.step.type).forked_references(task)


def register(step_type: StepType) -> None:
    """Register a step type under its name."""
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
