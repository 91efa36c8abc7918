"""Rules for the templates that the formatter does not check."""

from pathlib import Path

TEMPLATES = Path(__file__).parents[2] / "templates"
MAX_LINE_LENGTH = 120


def test_no_line_of_a_template_is_longer_than_120_columns():
    long_lines = [
        f"{path.relative_to(TEMPLATES)}:{number}"
        for path in sorted(TEMPLATES.rglob("*.html"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if len(line) > MAX_LINE_LENGTH
    ]

    assert long_lines == []
