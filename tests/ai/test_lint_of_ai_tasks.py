"""Lint of AI tasks: names of integrations, models and prompts that do not exist, with the name that was meant."""

import pytest

from conductor_app.ai.commands.integrations import save_integration, save_model
from conductor_app.ai.commands.prompts import save_prompt
from conductor_app.core.validation.findings import LintContext
from conductor_app.core.validation.lint import lint_definition
from conductor_app.definitions.validation import definition_context
from tests.builders import step_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def known_names(clock):
    save_integration("main", {"type": "openai"}, "olga")
    save_model("main", "gpt-4o", {}, "olga")
    save_integration("any", {"type": "openai"}, "olga")
    save_prompt("greeting", "Hi", "olga")


def definition(task_type="LLM_CHAT_COMPLETE", **inputs):
    inputs = {"llmProvider": "main", "model": "gpt-4o"} | inputs
    return {"name": "flow", "version": 1, "tasks": [step_of(task_type, "chat", inputParameters=inputs)]}


def findings(document):
    found = lint_definition(document, definition_context([document]))
    return [(each.path, each.message, each.meant) for each in found if "inputParameters" in each.path]


@pytest.mark.parametrize(
    ("inputs", "message", "meant"),
    [
        ({"llmProvider": "mian"}, "There is no integration `mian`. Did you mean `main`?", "main"),
        ({"model": "gpt-4"}, "The integration `main` has no model `gpt-4`. Did you mean `gpt-4o`?", "gpt-4o"),
        (
            {"promptName": "greetings"},
            "There is no prompt `greetings`: the name is sent as the text. Did you mean `greeting`?",
            "greeting",
        ),
        ({"vectorDB": "zzz"}, "There is no integration `zzz`.", ""),
    ],
)
def test_an_unknown_name_is_a_warning_that_names_the_one_that_was_meant(inputs, message, meant):
    path = f"tasks[0].inputParameters.{next(iter(inputs))}"

    assert findings(definition(**inputs)) == [(path, message, meant)]


@pytest.mark.parametrize(
    "inputs",
    [
        {"promptName": "greeting"},
        {"instructions": "Be brief."},
        {"llmProvider": "${workflow.input.p}", "model": "x"},
        {"model": "${workflow.input.m}"},
        {"llmProvider": "any", "model": "anything"},
        {"vectorDB": "default"},
        {"llmProvider": 5, "model": None},
    ],
)
def test_known_names_texts_and_expressions_are_accepted(inputs):
    assert findings(definition(**inputs)) == []


def test_other_steps_are_not_checked():
    assert findings(definition("HTTP", llmProvider="nothing", uri="https://acme.io")) == []


def test_names_are_read_only_for_definitions_that_need_them():
    context = definition_context([definition("HTTP")])

    assert (context.integrations, context.prompts) == (None, None)
    assert LintContext().integrations is None
