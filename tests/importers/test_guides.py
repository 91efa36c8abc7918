"""The guides of the migrations: their commands, options, exit statuses and links exist."""

import re
import shlex
from pathlib import Path

import pytest

from conductor_app.server.management.commands import import_conductor
from conductor_app.server.management.commands.import_conductor import EXIT_STATUS
from conductor_app.tools.importers.plan import OnConflict

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
GUIDES = {
    "migrate-from-conductor.md": ("import", import_conductor),
}


def read_guide(name):
    return (HOW_TO / name).read_text()


def parser_of(module):
    return module.Command().create_parser("conductor-app", "import")


def blocks(text):
    return "\n".join(re.findall(r"```\n(.*?)```", text, re.DOTALL))


@pytest.mark.parametrize("name", GUIDES)
def test_each_command_in_a_guide_is_valid(name):
    subcommand, module = GUIDES[name]
    lines = re.findall(rf"^conductor-app {subcommand} ([^|\n]+)", blocks(read_guide(name)), re.MULTILINE)

    assert len(lines) >= 2
    for line in lines:
        assert parser_of(module).parse_args(shlex.split(line)).source


@pytest.mark.parametrize("name", GUIDES)
def test_each_option_in_a_guide_exists(name):
    known = {option for _, module in GUIDES.values() for option in parser_of(module)._option_string_actions}

    assert set(re.findall(r"`(--[a-z-]+)", read_guide(name))) - known == set()


@pytest.mark.parametrize("name", GUIDES)
def test_each_link_in_a_guide_leads_to_a_page_and_a_heading(name):
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", read_guide(name))

    assert links
    for path, anchor in links:
        target = (HOW_TO / (path or name)).resolve()
        assert target.is_file(), path
        titles = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}
        assert not anchor or anchor in anchors, anchor


def test_the_guide_explains_each_exit_status_and_each_way_to_treat_conflicts():
    guide = read_guide("migrate-from-conductor.md")

    statuses = re.findall(r"^  (\d)  (.+)$", EXIT_STATUS, re.MULTILINE)
    assert len(statuses) == 4
    assert [status for status, _ in statuses] == re.findall(r"^\| (\d) \|", guide, re.MULTILINE)
    assert [each for each in OnConflict if f"| `{each}`" not in guide] == []
