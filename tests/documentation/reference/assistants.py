"""What AI assistants read: docs/llms.txt, the list of pages, and examples/skill/SKILL.md, how to write a workflow.

Both consist of texts of the pages, so that they say what the pages say. `make reference` writes them.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
LLMS, SKILL = DOCS / "llms.txt", ROOT / "examples" / "skill" / "SKILL.md"
LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
SECTIONS = (
    (
        "Write a definition",
        "how-to/handle-failures.md",
        ("Retries: delay, backoff and timeouts", "Other steps repair it"),
    ),
    ("Read values by expressions", "reference/expressions.md", ("Expressions",)),
    ("Write a worker", "how-to/write-a-worker.md", ("Python", "Executing safely")),
    ("Write a test", "how-to/test-workflows.md", ("1. Check the definition", "2. Play it", "4. Test workers")),
)
"""The parts of the skill: the title, the page, and its sections."""
HEAD = """---
name: conductor-workflows
description: Write, run and test durable workflows for Conductor App or another server with Conductor's API. Use it to \
write a workflow or task definition in JSON, a worker in Python, or a test of a workflow.
---

# Conductor workflows

A workflow is a JSON document of steps, which the server executes and stores. Steps of type SIMPLE wait in a queue for
a worker, a program that polls by HTTP. Check each definition with `POST /api/metadata/workflow/validate` before you
save it.
"""


def assistant_files() -> dict[Path, str]:
    """Return the text of each file."""
    return {LLMS: list_of_pages(), SKILL: skill()}


def list_of_pages() -> str:
    """Return llms.txt: each page of the navigation with its first sentence, in groups."""
    navigation = yaml.safe_load((DOCS / ".nav.yml").read_text())["nav"]
    intro = next(_paragraphs(DOCS / "index.md"))
    lines = ["# Conductor App", "", f"> {intro}"]
    loose = [entry for entry in navigation if isinstance(entry, str) and entry.endswith(".md")]
    for title, entries in [*_groups(navigation), ("Further pages", loose)]:
        lines += ["", f"## {title}", ""]
        lines += [_line(page) for page in entries if page != "index.md" and (DOCS / page).exists()]
    return "\n".join(lines) + "\n"


def _groups(navigation: list[Any]) -> Iterator[tuple[str, list[str]]]:
    for entry in navigation:
        if isinstance(entry, dict):
            for title, pages in entry.items():
                folder = pages if isinstance(pages, str) else ""
                found = sorted(f"{folder}/{path.name}" for path in (DOCS / folder).glob("*.md")) if folder else pages
                yield title, found


def _line(page: str) -> str:
    path = DOCS / page
    title = re.search(r"^# (.+)$", path.read_text(), re.MULTILINE)
    first = re.split(r"(?<=[.:])\s", next(_paragraphs(path), ""), maxsplit=1)[0]
    return f"- [{title[1] if title else page}]({page.removesuffix('.md')}.html): {re.sub(':$', '.', first)}"


def _paragraphs(path: Path) -> Iterator[str]:
    """Yield the paragraphs of plain text of a page, without links."""
    text = COMMENT.sub("", re.sub(r"\A---\n.*?\n---\n", "", path.read_text(), flags=re.DOTALL))
    for block in re.sub(r"```.*?```", "", text, flags=re.DOTALL).split("\n\n"):
        words = " ".join(LINK.sub(r"\1", block).split())
        if words and words[0] not in "#|!<-`*>" and not words[0].isdigit():
            yield words


def skill() -> str:
    """Return SKILL.md."""
    parts = [HEAD]
    for title, page, names in SECTIONS:
        parts.append(f"\n## {title}\n")
        parts += [f"\n{_section(DOCS / page, name)}\n" for name in names]
    parts.append("\n## Step types\n\n" + "\n".join(_step_types()) + "\n")
    return "".join(parts)


def _section(path: Path, name: str) -> str:
    """Return the text of a section of a page, without links and without its heading."""
    found = re.search(rf"^## {re.escape(name)}\n(.*?)(?=^## |\Z)", path.read_text(), re.MULTILINE | re.DOTALL)
    assert found, f"{path.name} has no section {name!r}."
    text = LINK.sub(r"\1", COMMENT.sub("", found[1])).strip()
    return re.sub(r"^###", "####", text, flags=re.MULTILINE)


def _step_types() -> Iterator[str]:
    text = (DOCS / "reference" / "step-types.md").read_text()
    for name, first in re.findall(r"^## ([A-Z_]+)\n\n(.+?[.:])(?:\s|$)", text, re.MULTILINE):
        yield f"- `{name}`: {LINK.sub(lambda link: link[1], first)}"
