"""Step types that authors can add, each with its sample and the members that a form edits, and new definitions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy

from ...core.human_tasks import ANSWER_SCHEMA_KEY
from ...core.schemas import CHOICE, LONG, TEXT, WHOLE, YES_NO
from ...core.step_edits import DEFAULT_ITERATIONS, loop_condition, step_of
from ...core.step_types.ai import CallMcpToolStep, LlmChatComplete, LlmTextComplete
from ...core.step_types.base import Simple
from ...core.step_types.decisions import DecisionStep, Noop, SetVariable, Switch, Terminate
from ...core.step_types.forks import ExclusiveJoin, ForkJoin, ForkJoinDynamic, Join
from ...core.step_types.loops import DoWhile, ForEach
from ...core.step_types.other_runs import GetWorkflowStep, TerminateWorkflowStep, UpdateTaskStep
from ...core.step_types.sub_workflows import StartWorkflow, SubWorkflow
from ...core.step_types.try_catch import TryCatch
from ...core.step_types.waiting import Human, Wait
from ...core.step_types.worker_tasks import Dynamic, EventStep, HttpStep, Inline, JsonJqTransform
from ...human_tasks.pages.form_templates import SAMPLE as FORM_TEMPLATE
from ...utils.formatting import LazyText
from ..step_labels import type_label

TYPED, LONG_TYPED, NAMES, ROWS = "typed", "long typed", "names", "rows"
"""Kinds of members: any JSON value as text, on one line or several, a list of names, and an object in rows."""
REFERENCES, TASKS, WORKFLOWS, STEPS = "references", "tasks", "workflows", "steps"


@dataclass(frozen=True, slots=True)
class StepMember:
    """A member of a step that the form edits. `place`: its keys, joined by dots. `options`: a list of suggestions."""

    place: str
    label: str | LazyText
    kind: str = TEXT
    help: str | LazyText = ""
    choices: tuple[str, ...] = ()
    options: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.place.split("."))


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A step type in the list of types. `sample`: new steps, whose references get a number if they are in use."""

    type: str
    summary: str | LazyText
    sample: Callable[[], list[dict[str, Any]]]
    members: tuple[StepMember, ...] = ()

    @property
    def label(self) -> str:
        return type_label(self.type)


def _one(type: str, ref: str, **fields: Any) -> Callable[[], list[dict[str, Any]]]:
    return lambda: [step_of(type, ref, **fields)]


def _input(name: str, label: str | LazyText, kind: str = TYPED, **options: Any) -> StepMember:
    return StepMember(f"inputParameters.{name}", label, kind, **{"options": REFERENCES, **options})


def _fork_sample() -> list[dict[str, Any]]:
    return [step_of(ForkJoin.type, "fork", forkTasks=[[], []]), step_of(Join.type, "join", joinOn=[])]


def _dynamic_fork_sample() -> list[dict[str, Any]]:
    inputs = {"forkTaskName": "my_task", "forkTaskInputs": "${workflow.input.items}"}
    return [
        step_of(ForkJoinDynamic.type, "dynamic_fork", inputParameters=inputs),
        step_of(Join.type, "dynamic_join", joinOn=[]),
    ]


def _loop_sample() -> list[dict[str, Any]]:
    return [step_of(DoWhile.type, "loop", loopCondition=loop_condition("loop", DEFAULT_ITERATIONS), loopOver=[])]


def _human_sample() -> list[dict[str, Any]]:
    question = {"displayName": "Approval", "question": "", "jsonSchema": FORM_TEMPLATE["jsonSchema"]}
    return [step_of(Human.type, "approval", inputParameters={ANSWER_SCHEMA_KEY: question})]


def _switch_sample() -> list[dict[str, Any]]:
    fields = {"evaluatorType": "value-param", "expression": "value", "decisionCases": {"true": []}, "defaultCase": []}
    return [step_of(Switch.type, "switch", inputParameters={"value": "${workflow.input.value}"}, **fields)]


SCRIPT_LABELS: Mapping[str, str | LazyText] = {
    "value-param": gettext_lazy("Value of an input"),
    "javascript": "JavaScript",
    "graaljs": "JavaScript (graaljs)",
    "python": "Python",
}
SCRIPT_LANGUAGES = tuple(SCRIPT_LABELS)
SCRIPT_HELP = gettext_lazy("The name of an input, or a script that reads the inputs from $.")
MODEL_MEMBERS = (_input("llmProvider", gettext_lazy("Integration")), _input("model", gettext_lazy("Model")))
CATALOG: tuple[CatalogEntry, ...] = (
    CatalogEntry(
        Simple.type,
        gettext_lazy("A worker polls for the task and reports its result"),
        _one(Simple.type, "my_task", inputParameters={}),
    ),
    CatalogEntry(
        HttpStep.type,
        gettext_lazy("Call a URL and use the response"),
        _one(HttpStep.type, "http", inputParameters={"uri": "https://example.com", "method": "GET"}),
        (
            _input("uri", gettext_lazy("URL")),
            _input("method", gettext_lazy("Method"), options="methods"),
            _input("headers", gettext_lazy("Headers"), ROWS),
            _input("body", gettext_lazy("Body"), LONG_TYPED),
        ),
    ),
    CatalogEntry(
        Human.type,
        gettext_lazy("A person answers a question or fills in a form"),
        _human_sample,
        (
            _input(f"{ANSWER_SCHEMA_KEY}.displayName", gettext_lazy("Title"), TEXT, options=""),
            _input(f"{ANSWER_SCHEMA_KEY}.question", gettext_lazy("Question"), LONG, options=""),
        ),
    ),
    CatalogEntry(
        Switch.type,
        gettext_lazy("Continue with one of several cases"),
        _switch_sample,
        (
            StepMember("evaluatorType", gettext_lazy("Evaluator"), CHOICE, choices=SCRIPT_LANGUAGES),
            StepMember("expression", gettext_lazy("Expression"), TEXT, SCRIPT_HELP),
        ),
    ),
    CatalogEntry(ForkJoin.type, gettext_lazy("Run branches in parallel and join them"), _fork_sample),
    CatalogEntry(
        DoWhile.type,
        gettext_lazy("Repeat steps while a condition holds"),
        _loop_sample,
        (
            StepMember("items", gettext_lazy("Items"), TEXT, gettext_lazy("A list to iterate over"), (), REFERENCES),
            StepMember("evaluatorType", gettext_lazy("Evaluator"), CHOICE, choices=SCRIPT_LANGUAGES[1:]),
            StepMember("loopCondition", gettext_lazy("Condition"), LONG, gettext_lazy("Repeats while it is true.")),
            _input("keepLastN", gettext_lazy("Keep iterations"), options=""),
        ),
    ),
    CatalogEntry(
        ForEach.type,
        gettext_lazy("Run steps once for each item of a list"),
        _one(ForEach.type, "each", items="${workflow.input.items}", inputParameters={"parallel": 1}, loopOver=[]),
        (
            StepMember("items", gettext_lazy("Items"), TEXT, gettext_lazy("A list to iterate over"), (), REFERENCES),
            _input("parallel", gettext_lazy("In parallel"), options=""),
            _input("onItemFailure", gettext_lazy("If an item fails"), options="item_failures"),
        ),
    ),
    CatalogEntry(
        TryCatch.type,
        gettext_lazy("Handle failures of the steps inside"),
        _one(TryCatch.type, "try", tryTasks=[], catchCases=[{"match": {}, "tasks": []}]),
    ),
    CatalogEntry(
        Wait.type,
        gettext_lazy("Continue after a duration, at a time or on a signal"),
        _one(Wait.type, "wait", inputParameters={"duration": "1 minute"}),
        (
            _input("duration", gettext_lazy("Duration"), help=gettext_lazy("For example: 2 hours 30 minutes")),
            _input("until", gettext_lazy("Until"), help=gettext_lazy("For example: 2027-01-31 12:00 CET")),
        ),
    ),
    CatalogEntry(
        SubWorkflow.type,
        gettext_lazy("Start another workflow and wait for its result"),
        _one(SubWorkflow.type, "sub_workflow", subWorkflowParam={"name": "my_workflow"}, inputParameters={}),
        (
            StepMember("subWorkflowParam.name", gettext_lazy("Workflow"), options=WORKFLOWS),
            StepMember("subWorkflowParam.version", gettext_lazy("Version"), WHOLE, gettext_lazy("Empty: the latest")),
        ),
    ),
    CatalogEntry(
        StartWorkflow.type,
        gettext_lazy("Start another workflow and continue immediately"),
        _one(StartWorkflow.type, "start", inputParameters={"startWorkflow": {"name": "my_workflow", "input": {}}}),
        (
            _input("startWorkflow.name", gettext_lazy("Workflow"), TEXT, options=WORKFLOWS),
            _input("startWorkflow.version", gettext_lazy("Version"), WHOLE, options=""),
            _input("startWorkflow.input", gettext_lazy("Input"), ROWS),
        ),
    ),
    CatalogEntry(
        GetWorkflowStep.type,
        gettext_lazy("Read the status, input and output of a run"),
        _one(
            GetWorkflowStep.type,
            "get_workflow",
            inputParameters={"id": "${workflow.input.workflowId}", "includeTasks": False},
        ),
        (
            _input("id", gettext_lazy("Workflow id"), TEXT),
            _input("includeTasks", gettext_lazy("With its tasks"), YES_NO, options=""),
        ),
    ),
    CatalogEntry(
        UpdateTaskStep.type,
        gettext_lazy("Complete or fail a task, such as a wait or a human task"),
        _one(
            UpdateTaskStep.type,
            "update_task",
            inputParameters={
                "taskStatus": "COMPLETED",
                "mergeOutput": False,
                "workflowId": "${workflow.workflowId}",
                "taskRefName": "my_task",
            },
        ),
        (
            _input("workflowId", gettext_lazy("Workflow id"), TEXT),
            _input("taskRefName", gettext_lazy("Reference of the task"), TEXT),
            _input("taskId", gettext_lazy("Task id"), TEXT, help=gettext_lazy("In place of workflow and reference")),
            _input("taskStatus", gettext_lazy("Status"), options="task_statuses"),
            _input("taskOutput", gettext_lazy("Output of the task"), ROWS),
            _input(
                "mergeOutput",
                gettext_lazy("Merge the output"),
                YES_NO,
                options="",
                help=gettext_lazy("Otherwise it replaces what the task has."),
            ),
        ),
    ),
    CatalogEntry(
        TerminateWorkflowStep.type,
        gettext_lazy("Terminate other runs"),
        _one(
            TerminateWorkflowStep.type,
            "terminate_workflow",
            inputParameters={
                "workflowId": ["${workflow.input.workflowId}"],
                "terminationReason": "",
                "triggerFailureWorkflow": False,
            },
        ),
        (
            _input("workflowId", gettext_lazy("Workflow ids"), help=gettext_lazy("An id, or a JSON list of ids")),
            _input("terminationReason", gettext_lazy("Reason"), TEXT),
            _input("triggerFailureWorkflow", gettext_lazy("Start failure workflows"), YES_NO, options=""),
        ),
    ),
    CatalogEntry(
        SetVariable.type,
        gettext_lazy("Store values that later steps read"),
        _one(SetVariable.type, "set_variable", inputParameters={"name": ""}),
    ),
    CatalogEntry(
        Inline.type,
        gettext_lazy("Compute a value in JavaScript or Python"),
        _one(
            Inline.type,
            "inline",
            inputParameters={
                "evaluatorType": "javascript",
                "expression": "$.value",
                "value": "${workflow.input.value}",
            },
        ),
        (
            _input("evaluatorType", gettext_lazy("Evaluator"), options="languages"),
            _input("expression", gettext_lazy("Script"), LONG),
        ),
    ),
    CatalogEntry(
        JsonJqTransform.type,
        gettext_lazy("Transform JSON with a jq program"),
        _one(JsonJqTransform.type, "jq", inputParameters={"queryExpression": ".", "value": "${workflow.input}"}),
        (_input("queryExpression", gettext_lazy("jq program"), LONG),),
    ),
    CatalogEntry(
        EventStep.type,
        gettext_lazy("Send an event to a sink"),
        _one(EventStep.type, "event", sink="conductor", inputParameters={}),
        (StepMember("sink", gettext_lazy("Sink"), options=REFERENCES),),
    ),
    CatalogEntry(
        Dynamic.type,
        gettext_lazy("The input names the task to run"),
        _one(
            Dynamic.type,
            "dynamic",
            dynamicTaskNameParam="taskName",
            inputParameters={"taskName": "${workflow.input.task}"},
        ),
        (StepMember("dynamicTaskNameParam", gettext_lazy("Input with the task name")),),
    ),
    CatalogEntry(
        ForkJoinDynamic.type,
        gettext_lazy("Run a branch for each item, decided at runtime"),
        _dynamic_fork_sample,
        (
            StepMember("dynamicForkTasksParam", gettext_lazy("Input with the tasks")),
            StepMember("dynamicForkTasksInputParamName", gettext_lazy("Input with their inputs")),
        ),
    ),
    CatalogEntry(
        Terminate.type,
        gettext_lazy("End the run with a status"),
        _one(Terminate.type, "terminate", inputParameters={"terminationStatus": "COMPLETED", "terminationReason": ""}),
        (
            _input("terminationStatus", gettext_lazy("Status"), options="statuses"),
            _input("terminationReason", gettext_lazy("Reason")),
            _input("workflowOutput", gettext_lazy("Output of the workflow"), LONG_TYPED),
        ),
    ),
    CatalogEntry(
        LlmChatComplete.type,
        gettext_lazy("Send messages to a model, which may call tools"),
        _one(
            LlmChatComplete.type,
            "chat",
            inputParameters={
                "llmProvider": "openai",
                "model": "gpt-4o-mini",
                "instructions": "",
                "messages": [{"role": "user", "message": "${workflow.input.question}"}],
            },
        ),
        (
            *MODEL_MEMBERS,
            _input("instructions", gettext_lazy("Instructions"), LONG),
            _input("messages", gettext_lazy("Messages"), LONG_TYPED, help=gettext_lazy("As a JSON list")),
            _input("tools", gettext_lazy("Tools"), LONG_TYPED, help=gettext_lazy("As a JSON list")),
            _input("jsonOutput", gettext_lazy("Answer in JSON"), options=""),
        ),
    ),
    CatalogEntry(
        LlmTextComplete.type,
        gettext_lazy("Send a prompt to a model and use its answer"),
        _one(
            LlmTextComplete.type,
            "answer",
            inputParameters={"llmProvider": "openai", "model": "gpt-4o-mini", "prompt": "${workflow.input.question}"},
        ),
        (
            *MODEL_MEMBERS,
            _input("promptName", gettext_lazy("Prompt name")),
            _input("prompt", gettext_lazy("Prompt"), LONG),
            _input("promptVariables", gettext_lazy("Prompt variables"), ROWS),
        ),
    ),
    CatalogEntry(
        CallMcpToolStep.type,
        gettext_lazy("Call a tool of an MCP server and use its result"),
        _one(
            CallMcpToolStep.type,
            "tool",
            inputParameters={"mcpServer": "https://example.com/mcp", "method": "my_tool", "arguments": {}},
        ),
        (
            _input("mcpServer", gettext_lazy("MCP server")),
            _input("method", gettext_lazy("Tool")),
            _input("arguments", gettext_lazy("Arguments"), ROWS),
        ),
    ),
    CatalogEntry(Noop.type, gettext_lazy("Does nothing; marks a place"), _one(Noop.type, "noop")),
)
OTHER_MEMBERS: Mapping[str, tuple[StepMember, ...]] = {
    Join.type: (StepMember("joinOn", gettext_lazy("Waits for"), NAMES, gettext_lazy("References, comma-separated")),),
    ExclusiveJoin.type: (StepMember("joinOn", gettext_lazy("Waits for"), NAMES),),
    DecisionStep.type: (
        StepMember("caseValueParam", gettext_lazy("Input that selects the case")),
        StepMember("caseExpression", gettext_lazy("Script"), LONG),
    ),
}
"""Members of types that the list does not offer."""
BY_TYPE = {entry.type: entry for entry in CATALOG}
STATIC_OPTIONS = {
    "methods": ("GET", "POST", "PUT", "PATCH", "DELETE"),
    "item_failures": ("FAIL", "CONTINUE"),
    "languages": SCRIPT_LANGUAGES,
    "task_statuses": ("COMPLETED", "FAILED", "FAILED_WITH_TERMINAL_ERROR"),
    "statuses": ("COMPLETED", "FAILED", "TERMINATED"),
}


def members_of(type: str) -> tuple[StepMember, ...]:
    return BY_TYPE[type].members if type in BY_TYPE else OTHER_MEMBERS.get(type, ())


NEW_WORKFLOW: dict[str, Any] = {
    "name": "my_workflow",
    "version": 1,
    "description": "",
    "ownerEmail": "",
    "inputParameters": [],
    "tasks": [],
    "outputParameters": {},
    "timeoutSeconds": 0,
    "timeoutPolicy": "ALERT_ONLY",
}


@dataclass(frozen=True, slots=True)
class WorkflowTemplate:
    """A workflow that a new definition can begin with."""

    name: str
    label: str | LazyText
    members: Callable[[], dict[str, Any]]

    def document(self) -> dict[str, Any]:
        """Return a new definition."""
        return {**NEW_WORKFLOW, **self.members()}


def _approval_template() -> dict[str, Any]:
    decide = {
        "inputParameters": {"approved": "${approval.output.approved}"},
        "evaluatorType": "value-param",
        "expression": "approved",
        "decisionCases": {"true": [step_of(Simple.type, "carry_out", inputParameters={})]},
        "defaultCase": [],
    }
    return {
        "tasks": [*_human_sample(), step_of(Switch.type, "decide", **decide)],
        "outputParameters": {"approved": "${approval.output.approved}"},
    }


def _parallel_template() -> dict[str, Any]:
    fork, join = _fork_sample()
    branches = [[step_of(Simple.type, name, inputParameters={})] for name in ("first", "second")]
    return {"tasks": [fork | {"forkTasks": branches}, join | {"joinOn": ["first", "second"]}]}


def _list_template() -> dict[str, Any]:
    [each] = BY_TYPE[ForEach.type].sample()
    task = step_of(Simple.type, "handle_item", inputParameters={"item": "${each.output.item}"})
    return {"inputParameters": ["items"], "tasks": [each | {"loopOver": [task]}]}


def _http_template() -> dict[str, Any]:
    return {"tasks": BY_TYPE[HttpStep.type].sample(), "outputParameters": {"response": "${http.output.response.body}"}}


def _worker_template() -> dict[str, Any]:
    task = step_of(Simple.type, "my_task", inputParameters={"order": "${workflow.input.order}"})
    return {"inputParameters": ["order"], "tasks": [task], "outputParameters": {"result": "${my_task.output.result}"}}


TEMPLATES = {
    template.name: template
    for template in (
        WorkflowTemplate("worker", gettext_lazy("One worker task"), _worker_template),
        WorkflowTemplate("approval", gettext_lazy("Approval by a person"), _approval_template),
        WorkflowTemplate("http", gettext_lazy("HTTP request"), _http_template),
        WorkflowTemplate("parallel", gettext_lazy("Parallel branches"), _parallel_template),
        WorkflowTemplate("list", gettext_lazy("A task for each item of a list"), _list_template),
    )
}
"""What a new workflow definition can begin with, instead of without steps."""
NEW_TASK = {
    "name": "my_task",
    "description": "",
    "ownerEmail": "",
    "retryCount": 3,
    "retryLogic": "FIXED",
    "retryDelaySeconds": 60,
    "timeoutSeconds": 3600,
    "responseTimeoutSeconds": 600,
    "timeoutPolicy": "TIME_OUT_WF",
}
