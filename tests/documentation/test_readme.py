"""The README is short, its links lead to files, and its sample is the documented one."""

import re
from pathlib import Path

import pytest

from conductor_app.processes.command_line import FURTHER_COMMANDS, REMOTE_SUMMARIES, SUBCOMMANDS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]+)(?:#([\w-]+))?\)")
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md")


def slugs(path: Path) -> set[str]:
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    explicit = {name for heading in headings for name in re.findall(r"\{ #([\w-]+) \}", heading)}
    return explicit | {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", text.lower()).strip()) for text in headings}


def test_the_readme_has_at_most_100_lines():
    assert len(README.splitlines()) <= 100


@pytest.mark.parametrize("document", DOCUMENTS)
def test_each_link_of_a_document_of_the_root_leads_to_a_file_and_a_heading(document):
    dead = [
        (name, anchor)
        for name, anchor in LINK.findall((ROOT / document).read_text())
        if not (ROOT / name).exists() or (anchor and anchor not in slugs(ROOT / name))
    ]

    assert dead == []


def test_the_worker_of_the_readme_is_that_of_the_guide():
    sample = PYTHON.search(README)
    guide = PYTHON.search((ROOT / "docs" / "how-to" / "write-a-worker.md").read_text())

    assert sample and guide
    assert sample[1] == guide[1]
    compile(sample[1], "worker", "exec")


@pytest.mark.parametrize(
    "document", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda path: path.stem
)
def test_each_subcommand_that_is_named_exists(document):
    named = set(re.findall(r"(?:`|^ *)conductor-app ([a-z_]+)", document.read_text(), re.MULTILINE))

    assert named - {*SUBCOMMANDS, *FURTHER_COMMANDS, *REMOTE_SUMMARIES, "help"} == set()


@pytest.mark.parametrize("document", PAGES, ids=lambda path: path.stem)
def test_no_page_installs_the_package_by_a_name_that_is_not_registered(document):
    """An attacker could register it. `IS_PUBLISHED` in docs/.site/root_pages.py changes the texts of the site."""
    assert re.findall(r"(?:pipx? install|uv tool install|uvx) +'?conductor-app\b", document.read_text()) == []
