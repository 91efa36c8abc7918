"""Tables of Markdown."""

import re
from collections.abc import Iterable, Sequence

ROW = re.compile(r"^\| (?P<cells>.*) \|$", re.MULTILINE)
CELL_END = re.compile(r"(?<!\\) \| ")


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. An empty cell is a dash."""
    lines = [titles, ["---"] * len(titles), *([cell or "–" for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def read_rows(text: str) -> list[list[str]]:
    """Return the rows of the tables in a text, without their titles."""
    rows = [CELL_END.split(row["cells"]) for row in ROW.finditer(text)]
    return [row for at, row in enumerate(rows) if row[0] != "---" and rows[at + 1 : at + 2] != [["---"] * len(row)]]


def code(text: object) -> str:
    """Return a text as code in a cell."""
    return f"`{escape(str(text))}`"


def escape(text: str) -> str:
    """Return a text that can stand in a cell."""
    return " ".join(text.split()).replace("|", "\\|")
