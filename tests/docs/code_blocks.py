"""The fenced code blocks of a page.

The title of a block, which readers see, says what it is:

- `title="worker.py"`: a file that the reader creates.
- `title="Second terminal"`: commands that keep running in a terminal of their own.
- `title="Output"`: the output of the block before it. `…` stands for any text on its line; a line that is only `…`
  stands for any number of lines.

A comment before a block exempts it: `<!-- not executed: the reason -->`. A comment `<!-- hidden: command -->` is
executed without being shown; it stands for what the reader does in a browser. `<!-- server: token -->` anywhere on the
page says that its server requires tokens.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
COMMENT = re.compile(r"<!--\s*(not executed|hidden|server):\s*(.*?)\s*-->", re.DOTALL)


@dataclass(frozen=True)
class CodeBlock:
    """A fenced block, or a hidden command."""

    language: str
    text: str
    line: int
    title: str = ""
    exemption: str = ""

    @property
    def is_output(self) -> bool:
        return self.title == "Output"

    @property
    def is_terminal(self) -> bool:
        return self.title.endswith(" terminal")

    @property
    def is_file(self) -> bool:
        return bool(re.fullmatch(r"[\w./-]+\.\w+", self.title))


def pages() -> list[Path]:
    """Return the pages whose code is executed."""
    folders = (ROOT / "docs" / "tutorials", ROOT / "docs" / "how-to")
    return sorted(page for folder in folders for page in folder.glob("*.md"))


def read_code_blocks(text: str) -> list[CodeBlock]:
    """Return the blocks of a page in order."""
    return list(_code_blocks(MarkdownIt().parse(text)))


def _code_blocks(tokens: list[Token]) -> Iterator[CodeBlock]:
    exemption = ""
    for token in tokens:
        line = token.map[0] + 1 if token.map else 0
        if token.type == "html_block":
            for kind, words in COMMENT.findall(token.content):
                if kind == "hidden":
                    yield CodeBlock("bash", words, line)
                elif kind == "not executed":
                    exemption = " ".join(words.split())
        elif token.type == "fence":
            language, *attributes = shlex.split(token.info) or [""]
            titles = [value for key, _, value in (each.partition("=") for each in attributes) if key == "title"]
            yield CodeBlock(language, token.content, line, "".join(titles), exemption)
            exemption = ""


def server_mode(text: str) -> str:
    """Return the mode of access that the page describes: `open` by default, or `token`."""
    return next((words for kind, words in COMMENT.findall(text) if kind == "server"), "open")
