"""The guide of definitions in Git: its samples are valid YAML with existing commands, its documents can be planned."""

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from conductor_app.core.document.json_positions import KIND_NAMES, recognize_kind
from conductor_app.core.validation.checks import read_alert, read_queue_limit, read_role
from conductor_app.tools.importers.folders import FIELDS
from conductor_app.tools.remote.files import read_documents
from conductor_app.tools.remote.folders import REMOTE_COMMANDS

GUIDE = (Path(__file__).parents[2] / "docs" / "how-to" / "change-definitions.md").read_text()
SAMPLES = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
LINES = [line for line in re.findall(r"conductor-app (?:plan|apply|drift|export)[^\n`]*", GUIDE) if " -" in line]


def test_the_job_of_github_is_valid_yaml():
    _definitions, _operators, _test, github = SAMPLES

    assert list(yaml.safe_load(github)["jobs"]["definitions"]) == ["runs-on", "env", "steps"]


def test_the_kinds_of_the_documents_are_recognized():
    documents = [value for sample in SAMPLES[:2] for value, _ in read_documents(sample, is_json=False)]

    kinds = ["workflow", "task", "schedule", "queue-limit", "alert", "role"]
    assert [recognize_kind(each) for each in documents] == kinds
    assert [recognize_kind(each | {"kind": None}) for each in documents if each.get("kind") != "queue-limit"] == [
        kind for kind in kinds if kind != "queue-limit"
    ]
    assert all(f"`{name}`" in GUIDE for name in KIND_NAMES)


def test_the_samples_of_queue_limits_alerts_and_roles_are_valid():
    limit, alert, role = (
        {name: value for name, value in document.items() if name != "kind"}
        for document, _ in read_documents(SAMPLES[1], is_json=False)
    )

    assert read_queue_limit(limit)[1] == read_alert(alert)[1] == read_role(role)[1] == []


@pytest.mark.parametrize("line", LINES)
def test_each_command_has_its_options(line):
    name, *arguments = shlex.split(line.split("||")[0].split("#")[0])[1:]
    known = {option for each in REMOTE_COMMANDS[name].params if isinstance(each, click.Option) for option in each.opts}

    assert {each for each in arguments if each.startswith("-")} <= known


def test_the_guide_has_commands():
    assert len(LINES) >= 6


def test_the_sample_of_a_test_has_the_fields_of_tests():
    [(test, _)] = read_documents(SAMPLES[2], is_json=False)

    assert test.keys() <= FIELDS
