"""The pages of docs/reference agree with the code. `make reference` writes their generated blocks."""

import json
import re

import pytest

from conductor_app.core.step_types import STEP_TYPES
from conductor_app.core.validation.checks import workflow_errors
from tests.documentation.reference import configuration, tables
from tests.documentation.reference.assistants import LLMS, SKILL, assistant_files
from tests.documentation.reference.pages import BLOCK, FOLDER, WRITERS, generated_pages, refresh
from tests.documentation.reference.step_types import PREFIX, documented_types

SECTION = re.compile(r"^## (?P<title>[A-Z_]+)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
SAMPLE = re.compile(r"```json\n(.*?)```", re.DOTALL)
MEANINGS = ("variables", "settings", "conductor-errors", "taskcluster-errors")
"""Blocks with columns that authors fill in."""


def sections_of_step_types() -> dict[str, str]:
    return {found["title"]: found["text"] for found in SECTION.finditer((FOLDER / "step-types.md").read_text())}


def blocks() -> dict[str, str]:
    pages = [path.read_text() for path in generated_pages()]
    return {block["name"]: block["text"] for page in pages for block in BLOCK.finditer(page)}


@pytest.mark.parametrize("page", generated_pages(), ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_a_generated_page_is_up_to_date(page):
    present = page.read_text()

    assert refresh(present) == present, "Run `make reference` and commit the result."


def test_each_generator_has_a_block_on_a_page():
    assert {name for name in blocks() if not name.startswith(PREFIX)} == set(WRITERS)


@pytest.mark.parametrize("block", MEANINGS)
def test_each_row_has_a_meaning(block):
    rows = tables.read_rows(blocks()[block])
    if block == "settings":
        rows = [row for row in rows if row[1] == "–"]

    assert rows
    assert [row[0] for row in rows if row[-1] == "–"] == []


def test_each_variable_that_a_settings_module_reads_has_one_row():
    rows = [row[0].strip("`") for row in tables.read_rows(blocks()["variables"])]

    assert sorted(rows) == sorted(configuration.documented_variables())


def test_a_variable_without_a_row_is_added_without_a_meaning():
    fresh = configuration.refresh_variables("| variable | values | default | meaning |\n| --- | --- | --- | --- |")

    assert "| `RETENTION_DAYS` | days from 0 | 0 | – |" in fresh


def test_the_meaning_of_a_variable_is_kept():
    fresh = configuration.refresh_variables("| `RETENTION_DAYS` | – | – | ended runs are deleted |")

    assert "| `RETENTION_DAYS` | days from 0 | 0 | ended runs are deleted |" in fresh


def test_the_row_of_a_variable_that_no_module_reads_is_removed():
    assert "GONE" not in configuration.refresh_variables("| `GONE` | text | none | nothing |")


def test_each_step_type_has_a_section_with_its_facts():
    sections = sections_of_step_types()

    assert list(sections) and set(sections) == set(documented_types())
    assert [name for name, text in sections.items() if f"generated: {PREFIX}{name} " not in text] == []
    assert set(STEP_TYPES) - set(documented_types()) == {"FOR_EACH_ITEM"}


@pytest.mark.parametrize(("name", "text"), sections_of_step_types().items())
def test_the_example_of_a_step_type_is_a_valid_definition(name, text):
    sample = SAMPLE.search(text)
    steps = json.loads(sample[1]) if sample else []
    steps = steps if isinstance(steps, list) else [steps]

    assert name in {step["type"] for step in steps}
    assert workflow_errors({"name": "sample", "version": 1, "schemaVersion": 2, "tasks": steps}) == []


@pytest.mark.parametrize("path", assistant_files(), ids=lambda path: path.name)
def test_what_assistants_read_is_up_to_date(path):
    assert path.read_text() == assistant_files()[path], "Run `make reference` and commit the result."


def test_the_list_for_assistants_has_each_page_of_the_navigation():
    listed = re.findall(r"\]\(([^)]+)\.html\)", assistant_files()[LLMS])

    assert len(listed) == len(set(listed)) > 35
    assert [page for page in listed if not (LLMS.parent / f"{page}.md").exists() and "project/" not in page] == []


def test_the_definitions_in_the_skill_are_valid():
    documents = [
        json.loads(sample) for sample in re.findall(r"```json[^\n]*\n(.*?)```", assistant_files()[SKILL], re.DOTALL)
    ]
    workflows = [document for document in documents if "tasks" in document]

    assert workflows
    assert [workflow_errors(document) for document in workflows] == [[] for _ in workflows]
