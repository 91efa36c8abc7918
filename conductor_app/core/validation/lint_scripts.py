"""The scripts that a document contains, with their languages and places."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..expressions import ScriptLanguage, evaluator
from ..step_structure import structure_of_step, type_of
from ..step_tree import walk
from ..step_types.do_while import DoWhile
from ..step_types.http_poll import HttpPollStep
from ..step_types.json_jq_transform import JsonJqTransform
from ..step_types.lambda_ import Lambda, wrap_as_function
from ..step_types.switch import Switch
from .inline_definitions import DEFINITION, PARAM

Document = Mapping[str, Any]


class WrittenScript(NamedTuple):
    """A script of a step. `language`: `javascript`, `jq` or `python`. `source`: as it is evaluated."""

    path: str
    language: str
    source: str
    step: Document
    written: str

    @property
    def offset(self) -> int:
        """Return the number of characters before the written script."""
        return max(self.source.find(self.written), 0)


def scripts_of(document: Any, path: str = "", depth: int = 0) -> Iterator[WrittenScript]:
    """Yield the scripts of all steps, those of inline definitions included.

    A script with `${…}` in an input is left out: only a run knows its text.
    """
    tasks = document.get("tasks") if isinstance(document, Mapping) else None
    for spot in walk(tasks, f"{path}tasks"):
        for field, language, source in _scripts_of_step(spot.step):
            if isinstance(source, str) and source.strip() and not (is_template(field) and "${" in source):
                wrapped = str(wrap_as_function(source)) if type_of(spot.step) == Lambda.type else source
                yield WrittenScript(f"{spot.path}.{field}", language, wrapped, spot.step, source)
        param = spot.step.get(PARAM)
        if isinstance(param, Mapping) and isinstance(param.get(DEFINITION), Mapping) and depth < MAX_DEPTH:
            yield from scripts_of(param[DEFINITION], f"{spot.path}.{PARAM}.{DEFINITION}.", depth + 1)


MAX_DEPTH = 20
"""The maximum nesting of inline definitions whose scripts are read."""


def is_template(field: str) -> bool:
    """Return True if expressions in this field of a step are resolved before it is read."""
    return field.startswith("inputParameters.")


def script_language(step: Document) -> str:
    """Return the language of a step's script; an empty text if it has none, or an unknown one."""
    structure, type = structure_of_step(step), type_of(step)
    if not structure.allows_python:
        return "javascript"
    inputs = step.get("inputParameters")
    holder = inputs if is_template(structure.script_field) else step
    name = holder.get("evaluatorType") if isinstance(holder, Mapping) else None
    if type == DoWhile.type:
        # Conductor ignores the evaluatorType of loops.
        return "python" if name == "python" else "javascript"
    found = evaluator(str(name or ("value-param" if type == Switch.type else "javascript")))
    return found.language if isinstance(found, ScriptLanguage) else ""


def _scripts_of_step(step: Document) -> Iterator[tuple[str, str, Any]]:
    """Yield field, language and text of each script; the text may be any value."""
    type, field = type_of(step), structure_of_step(step).script_field
    given = step.get("inputParameters")
    inputs = given if isinstance(given, Mapping) else {}
    if type == JsonJqTransform.type:
        yield "inputParameters.queryExpression", "jq", inputs.get("queryExpression")
    elif type == HttpPollStep.type:
        request = inputs.get("http_request")
        yield "inputParameters.terminationCondition", "javascript", inputs.get("terminationCondition")
        if isinstance(request, Mapping):
            place = "inputParameters.http_request.terminationCondition"
            yield place, "javascript", request.get("terminationCondition")
    elif type == Lambda.type and not inputs.get("scriptExpression"):
        yield "scriptExpression", "javascript", step.get("scriptExpression")
    elif field and (language := script_language(step)):
        holder = inputs if is_template(field) else step
        yield field, language, holder.get(field.rpartition(".")[2])
