"""The SDK compatibility table: one JSON file per SDK, written to one page of the documentation.

Regenerate the page after a file has changed: `python -m tests.clients.sdk_table`.
"""

import json
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "docs" / "reference" / "sdk-compatibility"
PAGE = FOLDER.with_suffix(".md")
SDKS = ("python", "javascript", "java", "go")
WORKS, DIFFERS, UNSUPPORTED = RESULTS = ("works", "differs", "unsupported")
WORDS = {WORKS: "works", DIFFERS: "differs", UNSUPPORTED: "not supported"}
AI = "AI: "
"""Prefix of the note of an untested method: agents are not part of this server."""
BROKEN = "Broken in the SDK: "
"""Prefix of the note of a method that fails before it sends a request."""

GO_TESTS = FOLDER / "go-integration-tests.json"
GO = """## Go

`make test-go` runs a client and workers written with {package} {version}, and the SDK's own integration tests. Of the \
{total} tests of its main branch, {passed} pass; version {version} has {in_version} of them. The test fails if another \
one passes or fails.

| tests that do not pass | reason |
|---|---|
{rows}"""

Entry = dict[str, str]


def read_results(sdk: str) -> dict[str, Any]:
    """Return the file of an SDK: its name, package, version, and the result of each method."""
    return json.loads((FOLDER / f"{sdk}.json").read_text(encoding="utf-8"))


def read_go_tests() -> dict[str, Any]:
    """Return the integration tests of the Go SDK: its version, and by test why it does not pass, "" if it does."""
    return json.loads(GO_TESTS.read_text(encoding="utf-8"))


def write_go_tests(tests: dict[str, str]) -> None:
    """Write the integration tests of the Go SDK, sorted."""
    text = json.dumps({**read_go_tests(), "tests": dict(sorted(tests.items()))}, indent=1, ensure_ascii=False)
    GO_TESTS.write_text(f"{text}\n", encoding="utf-8")


def known_sdks() -> list[str]:
    """Return the SDKs that have a file."""
    return [sdk for sdk in SDKS if (FOLDER / f"{sdk}.json").exists()]


def methods_of(sdk: str, *results: str) -> list[str]:
    """Return the methods with one of these results, as `Class.method`."""
    return [name for name, entry in read_results(sdk)["methods"].items() if entry["result"] in results]


def refused_methods(sdk: str) -> list[str]:
    """Return the methods that the server rejects, without those of agents and those that send no request."""
    entries = read_results(sdk)["methods"]
    return [name for name in methods_of(sdk, UNSUPPORTED) if not entries[name]["note"].startswith((AI, BROKEN))]


def write_results(sdk: str, facts: dict[str, Any]) -> None:
    """Write the file of an SDK, sorted."""
    tables = {name: dict(sorted(facts[name].items())) for name in ("methods", "builders") if name in facts}
    text = json.dumps({**facts, **tables}, indent=1, ensure_ascii=False)
    (FOLDER / f"{sdk}.json").write_text(f"{text}\n", encoding="utf-8")


def render_page() -> str:
    """Return the page in Markdown."""
    files = [read_results(sdk) for sdk in known_sdks()]
    parts = [
        "# SDK methods that work",
        "Every method of the official Conductor SDKs works against this server, except those that this page lists. The "
        "tests that call the methods check the page: a new method, or another result, fails them.",
        _render_totals(files),
        *(_render_sdk(facts) for facts in files),
        _render_go(read_go_tests()),
    ]
    return "\n\n".join(parts) + "\n"


def _render_go(facts: dict[str, Any]) -> str:
    tests = facts["tests"]
    by_reason: dict[str, list[str]] = {}
    for name, reason in tests.items():
        if reason.startswith("As "):
            reason = tests[reason.removeprefix("As ").rstrip(".")]
        if reason:
            by_reason.setdefault(reason, []).append(f"`{name}`")
    return GO.format(
        **facts,
        total=len(tests),
        passed=sum(not reason for reason in tests.values()),
        rows="\n".join(f"| {', '.join(names)} | {reason} |" for reason, names in by_reason.items()),
    )


def _render_totals(files: list[dict[str, Any]]) -> str:
    lines = ["| SDK | package | version | works | differs | not supported |", "|---|---|---|--:|--:|--:|"]
    for facts in files:
        counts = Counter(entry["result"] for entry in facts["methods"].values())
        numbers = " | ".join(str(counts[result]) for result in RESULTS)
        lines.append(f"| {facts['sdk']} | `{facts['package']}` | {facts['version']} | {numbers} |")
    return "\n".join(lines)


def _render_sdk(facts: dict[str, Any]) -> str:
    rows = []
    for client, group in groupby(facts["methods"].items(), key=lambda item: item[0].partition(".")[0]):
        rows += _rows_of_client(client, {name.partition(".")[2]: entry for name, entry in group})
    rows += _rows_of_client("builders of steps", facts.get("builders", {}))
    return "\n".join([f"## {facts['sdk']}\n", "| class | methods | what they do here |", "|---|---|---|", *rows])


def _rows_of_client(client: str, entries: dict[str, Entry]) -> list[str]:
    """Return one row per result and note, with the methods that share them. Those that work have none."""
    shared: dict[tuple[str, str], list[str]] = {}
    for name, entry in entries.items():
        if entry["result"] != WORKS:
            shared.setdefault((entry["result"], entry["note"]), []).append(f"`{name}`")
    ordered = sorted(shared.items(), key=lambda item: RESULTS.index(item[0][0]))
    return [
        f"| {client} | {'all' if len(names) == len(entries) else ', '.join(names)} "
        f"| **{WORDS[result]}**: {note.removeprefix(AI)} |"
        for (result, note), names in ordered
    ]


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")
