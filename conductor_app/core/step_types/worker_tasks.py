"""Steps whose tasks workers execute: SIMPLE, DYNAMIC, EVENT, and those of built-in workers and expressions."""

from collections.abc import Iterator, Mapping

from ..data_requests import CONNECTION_TARGET, ScriptResult
from ..decision_context import DecisionContext
from ..definition import Key, NamedUse, Step, is_name
from ..document.reading import name_step
from ..effects import CreateTask, Effect, PublishEvent
from ..errors import StepRefused
from ..events import event_name, is_internal, run_event_facts
from ..expressions import quote_value
from ..primitives import JsonValue
from ..schemas import LONG
from ..states import COMPLETED, FAILED, FAILED_FOR_GOOD
from . import base
from .base import (
    LONG_TYPED,
    REFERENCES,
    ROWS,
    SCRIPT_LANGUAGES,
    StepMember,
    choice_member,
    gettext_noop,
    input_member,
    step_of,
)

MAX_NAME_LENGTH = 255


class Dynamic(base.StepType):
    """A task with the name, and so of the type, that the input `dynamicTaskNameParam` names (execution §8.2).

    The engine enters the step that `as_executed` returns, so no task has this type.
    """

    type = "DYNAMIC"
    label = gettext_noop("Dynamic task")
    icon = "dynamic"
    required_fields = ("dynamicTaskNameParam",)
    names_task = True
    result_comes_from_outside = True
    is_completed_externally = True
    summary = gettext_noop("The input names the task to run")
    search_words = gettext_noop("runtime variable")
    sample = (
        step_of(
            type, "dynamic", dynamicTaskNameParam="taskName", inputParameters={"taskName": "${workflow.input.task}"}
        ),
    )
    members = (StepMember("dynamicTaskNameParam", gettext_noop("Input with the task name")),)

    def as_executed(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Step:
        inputs = base.resolve_inputs(step, ctx, key, ctx.run, now)
        parameter = step.document.get("dynamicTaskNameParam") or ""
        name = inputs.get(parameter)
        if not isinstance(name, str) or not name.strip():
            raise StepRefused(
                f"The input '{parameter}' of {step.ref} must be the name of a task, not {quote_value(name)}."
            )
        if len(name) > MAX_NAME_LENGTH or "\0" in name:
            raise StepRefused(f"The name of the task must have at most {MAX_NAME_LENGTH} characters, none of them NUL.")
        return name_step(step, name)

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        raise NotImplementedError

    def conductor_type(self, name: str) -> str:
        return name


class EventStep(base.StepType):
    """Completes when the event is published, or when a client completes it (asyncComplete) (execution §8.15).

    An event of this server is published in the decision itself, as a message in its transaction: once, and never lost.
    A built-in worker publishes to other sinks, and executes the step if the run is held by its concurrency limit.
    """

    type = "EVENT"
    label = gettext_noop("Publish event")
    receiving_inputs = ("sink",)
    icon = "event"
    required_fields = ("sink",)
    is_built_in = True
    is_forked_by_type = True
    result_comes_from_outside = True
    is_queued = True
    summary = gettext_noop("Send an event to a sink")
    search_words = gettext_noop("message notify publish")
    sample = (step_of(type, "event", sink="conductor", inputParameters={}),)
    members = (StepMember("sink", gettext_noop("Sink"), options=REFERENCES),)

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        run = ctx.run
        inputs = base.resolve_inputs(step, ctx, key, run, now)
        # A step that is an EVENT by its name has the sink among its inputs.
        sink = ctx.resolve(step.document["sink"]) if "sink" in step.document else inputs.get("sink")
        if not isinstance(sink, str):
            raise StepRefused(f"The sink of {step.ref} must be a text, not {quote_value(sink)}.")
        inputs |= {"sink": sink, "asyncComplete": step.async_complete}
        event = event_name(sink, run.definition.name, step.ref)
        if run.is_held or not is_internal(event):
            yield base.queued_task(step, key, ctx, now, base.QueuedWork(self.type, inputs))
            return
        payload = {**inputs, **run_event_facts(run), "event_produced": event}
        create: CreateTask
        if step.async_complete:
            create = base.engine_held_task(step, key, run, now, input=inputs, output=payload)
        else:
            create = base.completed_task(step, key, run, now, input=inputs, output=payload)
        yield create
        yield PublishEvent(event, create.task.attempt.id, payload)


class HttpStep(base.BuiltIn):
    """Executed by a built-in worker."""

    type = "HTTP"
    label = gettext_noop("HTTP request")
    receiving_inputs = ("uri",)
    icon = "http"
    required_inputs = ("http_request", "uri", "method")
    output_members = {"response": dict.fromkeys(base.RESPONSE)}
    output_sample = {"response": base.RESPONSE}
    summary = gettext_noop("Call a URL and use the response")
    search_words = gettext_noop("rest api url fetch get post webhook email")
    sample = (step_of(type, "http", inputParameters={"uri": "https://example.com", "method": "GET"}),)
    members = (
        input_member("uri", gettext_noop("URL")),
        input_member("method", gettext_noop("Method"), options="methods"),
        input_member("headers", gettext_noop("Headers"), ROWS),
        input_member("body", gettext_noop("Body"), LONG_TYPED),
    )


class HttpPollStep(base.BuiltIn):
    """Executed by a built-in worker."""

    type = "HTTP_POLL"
    label = gettext_noop("HTTP poll")
    receiving_inputs = ("uri", "terminationCondition")
    icon = "http"
    required_inputs = ("http_request", "uri", "method")
    output_members = {"response": dict.fromkeys(base.RESPONSE)}
    output_sample = {"response": base.RESPONSE}


class JdbcStep(base.BuiltIn):
    """Executed by a built-in worker."""

    type = "JDBC"
    label = gettext_noop("SQL statement")
    receiving_inputs = ("connectionId", "integrationName", "statement")
    icon = "database"
    required_inputs = ("statement",)
    output_sample = {"result": [{"id": 1}]}
    naming_inputs = ("connectionId", "integrationName")

    def named_objects(self, inputs: JsonValue) -> Iterator[NamedUse]:
        name = inputs.get("connectionId") or inputs.get("integrationName") if isinstance(inputs, Mapping) else None
        if is_name(name):
            yield NamedUse(CONNECTION_TARGET, name, "connectionId")


class KafkaPublishStep(base.BuiltIn):
    """Executed by a built-in worker."""

    type = "KAFKA_PUBLISH"
    label = gettext_noop("Publish to Kafka")
    receiving_inputs = ("topic", "bootStrapServers")
    icon = "event"
    required_inputs = ("kafka_request",)


class Inline(base.StepType):
    """Completes at once, with the value as `result` (execution §8.17)."""

    type = "INLINE"
    label = gettext_noop("Script")
    receiving_inputs = ("expression", "evaluatorType")
    icon = "code"
    output_members = {"result": None, "error": None}
    script_field = "inputParameters.expression"
    allows_python = True
    shows_isolation_group = True
    is_forked_by_type = True
    summary = gettext_noop("Compute a value in JavaScript or Python")
    search_words = gettext_noop("code expression function calculate")
    sample = (
        step_of(
            type,
            "inline",
            inputParameters={
                "evaluatorType": "javascript",
                "expression": "$.value",
                "value": "${workflow.input.value}",
            },
        ),
    )
    members = (
        choice_member("evaluatorType", gettext_noop("Language"), SCRIPT_LANGUAGES),
        input_member("expression", gettext_noop("Script"), LONG),
    )

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = base.resolve_inputs(step, ctx, key, ctx.run, now)
        result = base.value_of(inputs.get("expression"), inputs.get("evaluatorType") or "javascript", inputs, ctx)
        status = COMPLETED if not result.error else FAILED if result.timed_out else FAILED_FOR_GOOD
        output = {"error": result.error} if result.error else {"result": result.value}
        yield base.completed_task(step, key, ctx.run, now, status, input=inputs, output=output, reason=result.error)


class Lambda(base.StepType):
    """Completes at once, with the return value as `result`; a script that fails has no output (execution §8.18)."""

    type = "LAMBDA"
    label = gettext_noop("Script")
    receiving_inputs = ("scriptExpression",)
    icon = "code"
    output_members = {"result": None, "error": None}
    script_field = "inputParameters.scriptExpression"
    is_forked_by_type = True

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = base.resolve_inputs(step, ctx, key, ctx.run, now)
        script = inputs.get("scriptExpression") or step.document.get("scriptExpression")
        result = base.value_of(wrap_as_function(script), "javascript", inputs, ctx, "scriptExpression")
        output, status = ({}, FAILED) if result.error else ({"result": result.value}, COMPLETED)
        yield base.completed_task(step, key, ctx.run, now, status, input=inputs, output=output, reason=result.error)


def wrap_as_function(script: object) -> object:
    """Return the script as the body of a function that is called, because it uses `return`."""
    is_script = isinstance(script, str) and script.strip()
    return f"(function () {{ {script}\n}})()" if is_script else script


class JsonJqTransform(base.StepType):
    """Completes at once, with the first value as `result` and all values as `resultList` (execution §8.19)."""

    type = "JSON_JQ_TRANSFORM"
    label = gettext_noop("jq transformation")
    receiving_inputs = ("queryExpression",)
    icon = "code"
    required_inputs = ("queryExpression",)
    output_members = {"result": None, "resultList": None, "error": None}
    shows_isolation_group = True
    is_forked_by_type = True
    summary = gettext_noop("Transform JSON with a jq program")
    search_words = gettext_noop("convert map filter")
    sample = (step_of(type, "jq", inputParameters={"queryExpression": ".", "value": "${workflow.input}"}),)
    members = (input_member("queryExpression", gettext_noop("jq program"), LONG),)

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = base.resolve_inputs(step, ctx, key, ctx.run, now)
        program = inputs.get("queryExpression")
        if isinstance(program, str) and program.strip():
            result = ctx.script("jq", program, inputs)
        else:
            result = ScriptResult(error="The jq program is missing. Set the input 'queryExpression'.")
        output, status = _jq_output(result), FAILED if result.error else COMPLETED
        yield base.completed_task(step, key, ctx.run, now, status, input=inputs, output=output, reason=result.error)


def _jq_output(result: ScriptResult) -> dict[str, object]:
    """Return the task's output: the values, or the error."""
    if result.error:
        return {"error": result.error}
    return {"result": result.value[0] if result.value else None, "resultList": result.value}
