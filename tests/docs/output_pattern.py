"""Comparison of printed output with what a page shows."""

import re

REST_OF_LINE, LINES = "[^\n]*?", "(?:[^\n]*\n)*?"


def output_matches(shown: str, printed: str) -> bool:
    """Return whether a command printed what the page shows."""
    return re.fullmatch(_pattern(shown.strip("\n")), _clean(printed)) is not None


def output_contains(shown: str, printed: str) -> bool:
    """Return whether the output of a running process has the lines that the page shows, in their order."""
    return re.search(_pattern(shown.strip("\n")), _clean(printed)) is not None


def _pattern(shown: str) -> str:
    lines = [
        LINES if line.strip() == "…" else REST_OF_LINE.join(map(re.escape, line.rstrip().split("…"))) + "\n"
        for line in shown.split("\n")
    ]
    return "".join(lines)


def _clean(printed: str) -> str:
    lines = printed.strip("\n").split("\n")
    return "".join(f"{line.rstrip()}\n" for line in lines)
