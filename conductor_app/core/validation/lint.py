"""A definition read as a careful colleague would read it: everything that is odd about it, each with its place."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from ..definition import (
    DEFAULT_TYPE,
    MAX_DEPTH,
    MODEL_INPUTS,
    PROMPT_TARGET,
    Flow,
    NamedUse,
    StepSpot,
    bodies_of,
    named_uses,
    references_inside,
    structure_of_step,
    type_of,
    walk,
)
from ..document.reading import DEFINITION, PARAM, extract_definitions
from ..errors import ValidationError
from ..events import parse_matches, path_error
from ..expressions.json_text import expression_texts
from ..human_tasks import answer_fields
from ..primitives import JsonValue
from ..step_types.ai import CallMcpToolStep
from ..step_types.sub_workflows import StartWorkflow, SubWorkflow
from ..step_types.waiting import Human, WaitForWebhook
from ..step_types.worker_tasks import HttpPollStep, HttpStep, KafkaPublishStep
from .findings import (
    ERROR,
    HINT,
    NAME_CLASH,
    NO_ADDRESS,
    NO_DEFINITION,
    NO_RESULT,
    NO_TIMEOUT,
    NO_WORKER,
    REFUSED,
    UNJOINED,
    UNKNOWN_INPUT,
    UNKNOWN_NAME,
    UNREACHABLE,
    UNREAD_ANSWER,
    UNREADABLE,
    WARNING,
    LintContext,
    LintFinding,
    closest_name,
    did_you_mean,
)
from .lint_fields import (
    ReferenceLinter,
    lint_evaluator,
    lint_unknown_fields,
    names_read,
    reads_as_javascript,
    returns_nothing,
)

MAX_FINDINGS = 200
"""The maximum number of findings of a definition. A name to suggest may take 3 ms for each."""
SEVERITY_ORDER = {ERROR: 0, WARNING: 1, HINT: 2}
HTTP = (HttpStep.type, HttpPollStep.type)
SAMPLE_ADDRESS = re.compile(r"\s*(?:https?://)?(?:www\.)?(example\.(?:com|net|org))(?![\w.-])", re.IGNORECASE)
"""Addresses of hosts that are reserved for examples."""


def lint_definition(
    document: JsonValue, known: LintContext | None = None, validation_errors: Iterable[ValidationError] = ()
) -> list[LintFinding]:
    """Return all findings, most severe first.

    `validation_errors`: those of the document; one without a position is omitted if a finding reports the same
    with its position.
    """
    if not isinstance(document, dict):
        return [LintFinding(ERROR, REFUSED, "", "A definition is a JSON object.")]
    known = known or LintContext()
    found = list(walk(document.get("tasks")))
    found_by_all = chain(
        _lint_control_flow(found),
        lint_unknown_fields(document, found),
        ReferenceLinter(document, found, known).findings(),
        _lint_names(document, found, known),
        _lint_webhooks(document, found, known),
        _lint_ai_tasks(found, known),
        _lint_clusters(found, known),
        _lint_addresses(found, known),
        _lint_answers(document, found),
        _inline_findings(found, known),
    )
    said = list(islice(found_by_all, MAX_FINDINGS))
    has_place = any(finding.severity == ERROR for finding in said)
    refused = [
        LintFinding(ERROR, REFUSED, each.path, each.message) for each in validation_errors if each.path or not has_place
    ]
    return sort_by_severity([*refused, *said])


def sort_by_severity(found: Iterable[LintFinding]) -> list[LintFinding]:
    """Sort findings by severity; those of one severity keep their order."""
    return sorted(found, key=lambda finding: SEVERITY_ORDER[finding.severity])


def _inline_findings(found: Iterable[StepSpot], known: LintContext) -> Iterator[LintFinding]:
    """Yield the findings of the definitions that SUB_WORKFLOW steps hold: each is read as a workflow of its own."""
    for spot in found:
        _, definitions = extract_definitions({PARAM: spot.step.get(PARAM)})
        for definition in definitions.values():
            for finding in lint_definition(definition, known):
                place = f"{spot.path}.{PARAM}.{DEFINITION}"
                yield replace(finding, path=f"{place}.{finding.path}" if finding.path else place)


def _lint_control_flow(found: list[StepSpot]) -> Iterator[LintFinding]:
    by_ref: dict[str, StepSpot] = {}
    for spot in found:
        if spot.follows is not None and _never_continues(spot.follows):
            before = spot.follows.get("taskReferenceName")
            message = f"Control never comes here: `{before}` ends the run in every case."
            yield LintFinding(WARNING, UNREACHABLE, spot.path, message)
        yield from _lint_name_clash(spot, by_ref)
        yield from _lint_script(spot)
    for spot in found:
        if structure_of_step(spot.step).flow is Flow.JOIN:
            yield from _lint_join(spot, by_ref)
    yield from _lint_unjoined_forks(found)


def _never_continues(step: JsonValue) -> bool:
    """Return True if control never passes the step because it ends the run in each of its cases."""
    if not isinstance(step, Mapping):
        return False
    structure = structure_of_step(step)
    if structure.flow is Flow.CHOICE:
        bodies = list(structure.bodies(step))
        return bool(bodies) and all(any(map(_never_continues, body.steps)) for body in bodies)
    return structure.flow is Flow.END


def _lint_name_clash(spot: StepSpot, by_ref: dict[str, StepSpot]) -> Iterator[LintFinding]:
    ref, path = spot.ref, f"{spot.path}.taskReferenceName"
    if ref in by_ref:
        message = f"The reference `{ref}` is used twice. Give each step a unique reference."
        yield LintFinding(ERROR, NAME_CLASH, path, message, ref)
    elif ref == "workflow":
        message = "`workflow` means the run itself in expressions, so no expression could read the output of this step."
        yield LintFinding(WARNING, NAME_CLASH, path, message, ref)
    elif ref:
        by_ref[ref] = spot


def _lint_join(spot: StepSpot, by_ref: Mapping[str, StepSpot]) -> Iterator[LintFinding]:
    joined = spot.step.get("joinOn")
    for place, ref in enumerate(joined if isinstance(joined, list) else ()):
        if isinstance(ref, str) and ref not in by_ref and "${" not in ref:
            near = closest_name(ref, by_ref)
            message = f"There is no step `{ref}` to wait for.{did_you_mean(near)}"
            yield LintFinding(WARNING, UNJOINED, f"{spot.path}.joinOn[{place}]", message, ref, near)
    if structure_of_step(spot.step).ends_forks and isinstance(joined, list):
        yield from _lint_joined_cases(spot, [by_ref[ref] for ref in joined if isinstance(ref, str) and ref in by_ref])
    fork = spot.follows
    flow = structure_of_step(fork).flow if isinstance(fork, Mapping) else Flow.LEAF
    if not isinstance(fork, Mapping) or flow not in (Flow.FORK, Flow.DYNAMIC_FORK):
        if structure_of_step(spot.step).ends_forks and not joined:
            message = "This join follows no fork and names no tasks to join."
            yield LintFinding(WARNING, UNJOINED, spot.path, message)
    elif flow is Flow.FORK:
        yield from _compare_with_fork(spot, fork, joined)


def _lint_joined_cases(join: StepSpot, joined: list[StepSpot]) -> Iterator[LintFinding]:
    """Yield a finding for tasks that a run may never reach, and for steps that end before the tasks in their cases."""
    path = f"{join.path}.joinOn"
    for spot in joined:
        structure = structure_of_step(spot.step)
        if structure.flow is Flow.CHOICE and any(body.steps for body in structure.bodies(spot.step)):
            message = (
                f"`{spot.ref}` is completed as soon as its case is chosen, so this join does not wait for the steps in "
                "its cases. Add a step after it, such as a NOOP, and join that."
            )
            yield LintFinding(WARNING, UNJOINED, path, message, spot.ref)
    conditional = [spot for spot in joined if _is_conditional(spot, join)]
    if conditional:
        refs = " and ".join(f"`{spot.ref}`" for spot in conditional)
        runs = (
            "are alternatives of a step with cases: a run in which one of them is missing fails"
            if len(conditional) > 1
            else "runs only in one case: a run that takes another one fails"
        )
        message = (
            f"{refs} {runs} at this join. End the branch with a step after the cases, such as a NOOP, and join that."
        )
        yield LintFinding(WARNING, UNJOINED, path, message, conditional[0].ref)


def _is_conditional(spot: StepSpot, join: StepSpot) -> bool:
    """Return True if a run that reaches the join need not reach the step, because a case leads to it."""
    shared = 0
    for theirs, ours in zip(spot.levels, join.levels, strict=False):
        if theirs != ours:
            break
        shared += 1
    return any(level.flow is Flow.CHOICE and level.body != -1 for level in spot.levels[shared:])


def _lint_unjoined_forks(found: list[StepSpot]) -> Iterator[LintFinding]:
    top = [spot.step for spot in found if len(spot.levels) == 1]
    for spot, follower in zip(found, _followers(top, None), strict=True):
        if structure_of_step(spot.step).forks and (follower is None or not structure_of_step(follower).ends_forks):
            message = f"No JOIN follows `{spot.ref}`: a run fails when it reaches this fork. Add a JOIN right after it."
            yield LintFinding(WARNING, UNJOINED, spot.path, message)


def _followers(steps: list[Any], after: Mapping[str, Any] | None, depth: int = 0) -> Iterator[Mapping[str, Any] | None]:
    """Yield the step that a run goes to after each step, in the order of `spots`; None where a branch or body ends.

    The last step of a case is followed by the successor of its SWITCH, as in the layout of a definition.
    """
    known = [step for step in steps if isinstance(step, Mapping)]
    for step, follower in zip(known, [*known[1:], after], strict=False):
        yield follower
        if depth < MAX_DEPTH:
            structure = structure_of_step(step)
            after_bodies = follower if structure.flow is Flow.CHOICE else None
            for body in structure.bodies(step):
                yield from _followers(body.steps, after_bodies, depth + 1)


def _compare_with_fork(spot: StepSpot, fork: Mapping[str, Any], joined: JsonValue) -> Iterator[LintFinding]:
    """Compare the tasks that a join names with the branches of its fork."""
    ends = [ref for body in bodies_of(fork) if (ref := _last_reference(body.steps))]
    named = set(joined) if isinstance(joined, list) and all(isinstance(ref, str) for ref in joined) else set()
    if not named:
        message = (
            f"This join names no tasks to join. The branches end with {', '.join(f'`{ref}`' for ref in ends)}."
            if ends
            else f"The branches of `{fork.get('taskReferenceName')}` have no steps yet. Add a step to each branch."
        )
        yield LintFinding(WARNING, UNJOINED, f"{spot.path}.joinOn", message)
    elif not named & set(references_inside(fork)):
        message = f"This join waits for no branch of the fork `{fork.get('taskReferenceName')}` before it."
        yield LintFinding(WARNING, UNJOINED, f"{spot.path}.joinOn", message)


def _last_reference(steps: list[Any]) -> str:
    last = steps[-1] if steps else None
    return str(last.get("taskReferenceName") or "") if isinstance(last, Mapping) else ""


def _lint_script(spot: StepSpot) -> Iterator[LintFinding]:
    """Yield findings on names that a script reads and its step does not pass."""
    step, structure = spot.step, structure_of_step(spot.step)
    field = structure.script_field
    given = step.get("inputParameters")
    inputs = given if isinstance(given, Mapping) else {}
    holder = inputs if field.startswith("inputParameters.") else step
    script = holder.get(field.rpartition(".")[2]) if field else None
    yield from lint_evaluator(spot)
    if not isinstance(script, str) or not script.strip():
        return
    if structure.allows_python and holder.get("evaluatorType") == "python":
        yield from _lint_python_script(f"{spot.path}.{field}", script)
        return
    known = {*map(str, inputs), *structure.script_inputs(step)}
    is_name = (
        structure.allows_python and structure.flow is not Flow.LOOP and holder.get("evaluatorType") == "value-param"
    )
    read = {script} if is_name else names_read(script)
    for name in sorted(read - known):
        near = closest_name(name, known)
        message = f"`{name}` is read here, but inputParameters do not give it.{did_you_mean(near)}"
        yield LintFinding(WARNING, UNKNOWN_INPUT, f"{spot.path}.{field}", message, name, near)


def _lint_python_script(path: str, script: str) -> Iterator[LintFinding]:
    """Yield findings on a script in Python that has no access to its inputs, or no result."""
    if reads_as_javascript(script):
        message = "In Python the inputs are variables: write `name` instead of `$.name`."
        yield LintFinding(WARNING, UNREADABLE, path, message)
    if returns_nothing(script):
        message = "This script has no `return`, so its value is null. In Python, the value is the returned value."
        yield LintFinding(WARNING, NO_RESULT, path, message)


LIMITS = ("timeoutSeconds", "responseTimeoutSeconds", "totalTimeoutSeconds")


def _lint_names(document: Mapping[str, Any], found: list[StepSpot], known: LintContext) -> Iterator[LintFinding]:
    """Yield the findings on names. Each task name is reported once."""
    failure = document.get("failureWorkflow")
    if failure and failure == document.get("name"):
        message = f"A failed run of `{failure}` starts `{failure}` again, whose failure starts the next one."
        yield LintFinding(WARNING, UNKNOWN_NAME, "failureWorkflow", message, str(failure))
    else:
        yield from _lint_workflow_name(failure, None, "failureWorkflow", known)
    said: set[str] = set()
    for spot in found:
        kind = type_of(spot.step)
        if kind == DEFAULT_TYPE and spot.name not in said:
            said.add(spot.name)
            yield from _lint_task_name(spot, known)
        elif kind in (SubWorkflow.type, StartWorkflow.type):
            yield from _lint_sub_workflow(spot, document, known)


def _lint_task_name(spot: StepSpot, known: LintContext) -> Iterator[LintFinding]:
    own, path = spot.step.get("taskDefinition"), f"{spot.path}.name"
    definition = own if isinstance(own, Mapping) else (known.tasks or {}).get(spot.name)
    if definition is None and known.tasks is not None and spot.name:
        default = ". It gets the defaults: three retries a minute apart, an hour to answer"
        for found in _lint_unknown("task definition", spot.name, path, known, known.tasks, default):
            yield replace(found, kind=NO_DEFINITION, severity=found.severity if found.meant else HINT)
    elif definition is not None and not any(_seconds(definition, limit) for limit in LIMITS):
        message = f"`{spot.name}` has no time limit: if its worker falls silent, the run waits for ever."
        yield LintFinding(WARNING, NO_TIMEOUT, path, message, spot.name)
    if known.worked is not None and spot.name and spot.name not in known.worked:
        yield LintFinding(HINT, NO_WORKER, path, f"No worker has ever polled `{spot.name}`.", spot.name)


def _lint_unknown(
    what: str, name: str, path: str, known: LintContext, others: Iterable[str], effect: str = ""
) -> Iterator[LintFinding]:
    """Yield the finding for a name that is not known.

    Where the actor knows some names only, it may exist all the same: there is only a hint, if a known name is similar.
    """
    near = closest_name(name, others)
    if what not in known.limited:
        message = f"There is no {what} `{name}`{effect}.{did_you_mean(near)}"
        yield LintFinding(WARNING, UNKNOWN_NAME, path, message, name, near)
    elif near:
        message = f"No {what} `{name}` is visible to you.{did_you_mean(near)}"
        yield LintFinding(HINT, UNKNOWN_NAME, path, message, name, near)


def _seconds(definition: Mapping[str, Any], name: str) -> bool:
    value = definition.get(name)
    if value is None:
        # A task definition without a response timeout gets one hour.
        return name == "responseTimeoutSeconds"
    return value not in (0, "0", "")


def _lint_sub_workflow(spot: StepSpot, document: Mapping[str, Any], known: LintContext) -> Iterator[LintFinding]:
    if type_of(spot.step) == SubWorkflow.type:
        param, place = spot.step.get("subWorkflowParam"), f"{spot.path}.subWorkflowParam.name"
    else:
        given = spot.step.get("inputParameters")
        param = given.get("startWorkflow") if isinstance(given, Mapping) else None
        place = f"{spot.path}.inputParameters.startWorkflow.name"
    if not isinstance(param, Mapping) or param.get("workflowDefinition"):
        return
    if param.get("name") == document.get("name") and len(spot.levels) == 1 and type_of(spot.step) == SubWorkflow.type:
        message = f"`{param.get('name')}` starts itself here, in every run: that never ends."
        yield LintFinding(WARNING, UNKNOWN_NAME, place, message, str(param.get("name")))
    else:
        yield from _lint_workflow_name(param.get("name"), param.get("version"), place, known)


def _lint_workflow_name(name: Any, version: Any, path: str, known: LintContext) -> Iterator[LintFinding]:
    if not isinstance(name, str) or not name or "${" in name or known.workflows is None:
        return
    if name not in known.workflows:
        yield from _lint_unknown("workflow", name, path, known, known.workflows)
    elif isinstance(version, int) and version and version not in known.workflows[name]:
        have = ", ".join(map(str, sorted(known.workflows[name])[-5:]))
        message = f"Workflow `{name}` has no version {version}; there is {have}."
        yield LintFinding(WARNING, UNKNOWN_NAME, path.replace(".name", ".version"), message, str(version))


def _lint_ai_tasks(found: Iterable[StepSpot], known: LintContext) -> Iterator[LintFinding]:
    """Yield a warning for each name of an integration, a model or a prompt that is unknown."""
    for spot in found:
        for use in named_uses(type_of(spot.step), spot.step.get("inputParameters")):
            path = f"{spot.path}.inputParameters"
            if use.target_type != PROMPT_TARGET:
                yield from _lint_model(use, path, known)
            elif use.input == "promptName" and known.prompts is not None and use.name not in known.prompts:
                effect = ": the name is sent as the text"
                yield from _lint_unknown("prompt", use.name, f"{path}.promptName", known, known.prompts, effect)


def _lint_model(use: NamedUse, path: str, known: LintContext) -> Iterator[LintFinding]:
    if known.integrations is None:
        return
    integration, _, model = use.name.partition(":")
    if integration not in known.integrations:
        yield from _lint_unknown("integration", integration, f"{path}.{use.input}", known, known.integrations)
    elif model and (models := known.integrations[integration]) and model not in models:
        near = closest_name(model, models)
        message = f"The integration `{integration}` has no model `{model}`.{did_you_mean(near)}"
        yield LintFinding(WARNING, UNKNOWN_NAME, f"{path}.{MODEL_INPUTS[use.input]}", message, model, near)


def _lint_clusters(found: Iterable[StepSpot], known: LintContext) -> Iterator[LintFinding]:
    """Yield an error for each step whose Kafka cluster is not configured: its tasks would fail."""
    for spot in found:
        given = spot.step.get("inputParameters")
        request = given.get("kafka_request") if isinstance(given, Mapping) else None
        servers = request.get("bootStrapServers") if isinstance(request, Mapping) else None
        if known.clusters is None or type_of(spot.step) != KafkaPublishStep.type or not isinstance(servers, str):
            continue
        given_servers = ",".join(each.strip() for each in servers.split(","))
        if servers and "${" not in servers and not {servers, given_servers} & known.clusters:
            path = f"{spot.path}.inputParameters.kafka_request.bootStrapServers"
            message = f"`{servers[:200]}` is not a configured Kafka cluster: the operator sets KAFKA_CLUSTERS."
            yield LintFinding(ERROR, UNKNOWN_NAME, path, message, servers)


def _lint_webhooks(document: Mapping[str, Any], found: Iterable[StepSpot], known: LintContext) -> Iterator[LintFinding]:
    """Yield a warning for each condition that cannot be read, and for each step that no webhook can complete."""
    for spot in found:
        if type_of(spot.step) != WaitForWebhook.type:
            continue
        given = spot.step.get("inputParameters")
        yield from _lint_condition(given if isinstance(given, Mapping) else {}, f"{spot.path}.inputParameters.matches")
        if known.received is not None and document.get("name") not in known.received:
            message = (
                f"No webhook names `{document.get('name')}` among its receiver workflows: "
                f"`{spot.ref}` waits until it is reported on."
            )
            yield LintFinding(WARNING, UNKNOWN_NAME, spot.path, message)


def _lint_condition(inputs: Mapping[str, Any], path: str) -> Iterator[LintFinding]:
    if isinstance(inputs.get("matches"), str):
        return
    try:
        matches = parse_matches(inputs)
    except ValueError as error:
        yield LintFinding(WARNING, UNREADABLE, path, str(error))
        return
    if not matches:
        message = "This step has no `matches`, so any event of a receiving webhook completes it."
        yield LintFinding(WARNING, UNREADABLE, path, message)
    for each in matches:
        if fault := path_error(each):
            yield LintFinding(WARNING, UNREADABLE, path, f"The path `{each}` cannot be read: {fault}.", each)


def _lint_addresses(found: Iterable[StepSpot], known: LintContext) -> Iterator[LintFinding]:
    """Yield a warning for each step that calls no address, or the one that the editor's sample contains."""
    for spot in found:
        inputs = _mapping(spot.step.get("inputParameters"))
        if type_of(spot.step) in HTTP:
            yield from _lint_uri(spot, inputs, known)
        elif type_of(spot.step) == CallMcpToolStep.type:
            yield from _sample_finding(spot, inputs.get("mcpServer"), "mcpServer")


def _lint_uri(spot: StepSpot, inputs: Mapping[str, Any], known: LintContext) -> Iterator[LintFinding]:
    request = inputs.get("http_request")
    if isinstance(request, str):
        return
    place, holder = ("http_request.uri", request) if isinstance(request, Mapping) else ("uri", inputs)
    own = spot.step.get("taskDefinition")
    definition = own if isinstance(own, Mapping) else (known.tasks or {}).get(spot.name, {})
    template = _mapping(definition.get("inputTemplate"))
    uri = holder.get("uri") or inputs.get("uri")
    if not uri and not {"uri", "http_request"} & template.keys():
        message = f"`{spot.ref}` has no URL, so it fails. Enter the address that it calls as URL (`uri`)."
        yield LintFinding(WARNING, NO_ADDRESS, f"{spot.path}.inputParameters.{place}", message)
    yield from _sample_finding(spot, uri, place)


def _sample_finding(spot: StepSpot, address: JsonValue, place: str) -> Iterator[LintFinding]:
    if isinstance(address, str) and (sample := SAMPLE_ADDRESS.match(address)):
        message = (
            f"`{spot.ref}` calls {sample[1]}, which exists only for examples. Enter the address that it should call."
        )
        yield LintFinding(WARNING, NO_ADDRESS, f"{spot.path}.inputParameters.{place}", message, address)


def _lint_answers(document: Mapping[str, Any], found: list[StepSpot]) -> Iterator[LintFinding]:
    """Yield a warning for each human task with a form whose answer is neither read nor part of the run's output."""
    asking = [
        (spot, fields) for spot in found if type_of(spot.step) == Human.type and (fields := answer_fields(spot.step))
    ]
    if not asking:
        return
    conditions = (str(spot.step.get("loopCondition") or "") for spot in found)
    expressions = "\n".join((*expression_texts(document), *conditions))
    last = max(spot.levels[0].index for spot in found)
    for spot, fields in asking:
        is_output = not document.get("outputParameters") and spot.levels[0].index == last
        if is_output or any(_is_read(ref, expressions) for ref in _outputs_with(spot, found)):
            continue
        field = f"${{{spot.ref}.output.{fields[0]}}}"
        message = (
            f"No step reads the answer of `{spot.ref}`: the run continues in the same way whatever a person answers. "
            f"Add a Switch that reads `{field}`, or pass it to a later step."
        )
        yield LintFinding(WARNING, UNREAD_ANSWER, f"{spot.path}.inputParameters", message)


def _is_read(ref: str, expressions: str) -> bool:
    return bool(re.search(rf"(?<![\w-]){re.escape(ref)}(?![\w-])", expressions))


def _outputs_with(spot: StepSpot, found: list[StepSpot]) -> set[str]:
    """Return the references of the steps whose outputs contain that of a step: those around it, and their joins."""
    around = {spot.ref, *(other.ref for other in found if spot.path.startswith(f"{other.path}."))}
    joined = ((other.ref, other.step.get("joinOn")) for other in found)
    joins = {ref for ref, refs in joined if isinstance(refs, list) and around.intersection(map(str, refs))}
    return (around | joins) - {""}


def _mapping(value: JsonValue) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
