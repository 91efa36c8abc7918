"""The pages of docs/reference that have blocks generated from the code.

A block stands between `<!-- generated: NAME -->` and `<!-- end -->`; the text around it is written by hand. Blocks that
have texts of authors in them, such as the meaning of a variable, keep these texts.
"""

import re
from collections.abc import Callable
from pathlib import Path

from . import command_line, configuration, errors, permissions, step_types
from . import states as state_tables

FOLDER = Path(__file__).parents[3] / "docs" / "reference"
BLOCK = re.compile(r"<!-- generated: (?P<name>[\w-]+) -->\n(?P<text>.*?)<!-- end -->", re.DOTALL)
Writer = Callable[[str], str]
"""Return the text of a block. It receives the present one."""

WRITERS: dict[str, Writer] = {
    "variables": configuration.refresh_variables,
    "settings": configuration.refresh_settings,
    "executors": lambda _: step_types.write_summary(),
    "states": lambda _: state_tables.write_tables(),
    "conductor-errors": errors.write_conductor_errors,
    "taskcluster-errors": errors.write_taskcluster_errors,
    "roles": lambda _: permissions.write_roles(),
    "accesses": lambda _: permissions.write_accesses(),
    "commands": lambda _: command_line.write_commands(),
}


def generated_pages() -> list[Path]:
    """Return the pages with generated blocks."""
    return sorted(path for path in FOLDER.rglob("*.md") if BLOCK.search(path.read_text()))


def refresh(page: str) -> str:
    """Return the text of a page with fresh blocks."""
    return BLOCK.sub(_refresh_block, page)


def _refresh_block(block: re.Match[str]) -> str:
    name = block["name"]
    write = WRITERS.get(name) or step_types.writer_of(name)
    return f"<!-- generated: {name} -->\n{write(block['text']).strip()}\n<!-- end -->"
