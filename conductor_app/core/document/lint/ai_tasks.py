"""Lint of AI tasks: integrations, models and prompts that do not exist."""

from collections.abc import Iterable, Iterator

from ...ai_names import MODEL_INPUTS, PROMPT_TARGET, NamedUse, named_uses
from ...step_structure import type_of
from ...step_tree import StepSpot
from .findings import UNKNOWN_NAME, WARNING, LintContext, LintFinding, closest_name, did_you_mean


def lint_ai_tasks(found: Iterable[StepSpot], known: LintContext) -> Iterator[LintFinding]:
    """Yield a warning for each name of an integration, a model or a prompt that is unknown."""
    for spot in found:
        for use in named_uses(type_of(spot.step), spot.step.get("inputParameters")):
            path = f"{spot.path}.inputParameters"
            if use.target_type != PROMPT_TARGET:
                yield from _lint_model(use, path, known)
            elif use.input == "promptName" and known.prompts is not None and use.name not in known.prompts:
                near = closest_name(use.name, known.prompts)
                message = f"There is no prompt `{use.name}`: the name is sent as the text.{did_you_mean(near)}"
                yield LintFinding(WARNING, UNKNOWN_NAME, f"{path}.promptName", message, use.name, near)


def _lint_model(use: NamedUse, path: str, known: LintContext) -> Iterator[LintFinding]:
    if known.integrations is None:
        return
    integration, _, model = use.name.partition(":")
    if integration not in known.integrations:
        near = closest_name(integration, known.integrations)
        message = f"There is no integration `{integration}`.{did_you_mean(near)}"
        yield LintFinding(WARNING, UNKNOWN_NAME, f"{path}.{use.input}", message, integration, near)
    elif model and (models := known.integrations[integration]) and model not in models:
        near = closest_name(model, models)
        message = f"The integration `{integration}` has no model `{model}`.{did_you_mean(near)}"
        yield LintFinding(WARNING, UNKNOWN_NAME, f"{path}.{MODEL_INPUTS[use.input]}", message, model, near)
