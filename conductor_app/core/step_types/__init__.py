"""The kinds of steps: one module a type, one table that finds it."""

from .base import StepType
from .decision import DecisionStep
from .do_while import DoWhile
from .dynamic import Dynamic
from .event import EventStep
from .exclusive_join import ExclusiveJoin
from .for_each import ForEach
from .for_each_item import ForEachItem
from .fork_join import ForkJoin
from .fork_join_dynamic import ForkJoinDynamic
from .human import Human
from .inline import Inline
from .join import Join
from .json_jq_transform import JsonJqTransform
from .lambda_ import Lambda
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

SIMPLE = Simple()

STEP_TYPES: dict[str, StepType] = {
    kind.type: kind
    for kind in (
        SIMPLE,
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
    )
}


def step_type_of(step_type: str) -> StepType:
    """The kind of a step type; a type that is not in the table is work for a worker of that name."""
    return STEP_TYPES.get(step_type, SIMPLE)
