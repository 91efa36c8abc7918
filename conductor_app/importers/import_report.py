"""The report of an import: sentences for a terminal, or one JSON document."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from .conductor_import import NeededValue, SourceReport
from .planned_item import CompatibilityFinding, Outcome, PlannedItem, Verdict

MARKS = {
    Outcome.CREATED: "+",
    Outcome.REPLACED: "~",
    Outcome.NEW_VERSION: "~",
    Outcome.SKIPPED: "!",
    Outcome.FAILED: "!",
    Outcome.UNCHANGED: "=",
}
COUNTED = (
    (Outcome.CREATED, "created", "to create"),
    (Outcome.REPLACED, "replaced", "to replace"),
    (Outcome.NEW_VERSION, "saved as new versions", "to save as new versions"),
    (Outcome.UNCHANGED, "unchanged", "unchanged"),
    (Outcome.SKIPPED, "left out", "left out"),
    (Outcome.FAILED, "failed", "failed"),
)
"""The outcomes in a summary, with their words after the import and before it."""
MAX_LISTED = 10


def plan_lines(items: Iterable[PlannedItem], *, with_unchanged: bool = False) -> Iterator[str]:
    """Yield a line for each object that the import changes or leaves out, with its differences below it."""
    for item in items:
        if item.planned is Outcome.UNCHANGED and not with_unchanged:
            continue
        yield clean_text(f"{MARKS[item.planned]} {item.kind} {item.title}{_remark(item)}")
        yield from (clean_text(f"      {change}") for change in item.changes)


def _remark(item: PlannedItem) -> str:
    if item.verdict is Verdict.INVALID:
        return f": cannot be imported: {item.reason}"
    if item.verdict is Verdict.DIFFERENT:
        words = {Outcome.SKIPPED: "kept as it is here", Outcome.REPLACED: "replaced by the source's"}
        return f": differs, {words.get(item.planned, item.planned)}. The source would change:"
    return ""


def finding_lines(items: Iterable[PlannedItem]) -> Iterator[str]:
    """Yield what this server does differently. A finding of several versions is written once."""
    items = list(items)
    versions_of = Counter((item.kind, item.name) for item in items)
    said: dict[tuple[str, str], dict[CompatibilityFinding, list[str]]] = {}
    for item in items:
        for finding in item.findings:
            said.setdefault((item.kind, item.name), {}).setdefault(finding, []).append(str(item.version))
    for (kind, name), findings in said.items():
        yield clean_text(f"  {kind} {name}")
        for finding, versions in findings.items():
            in_all = len(versions) == versions_of[kind, name]
            shown = "" if in_all else f" (in version {_join(versions)})"
            yield clean_text(f"    {finding}{shown}")


def source_lines(report: SourceReport) -> Iterator[str]:
    """Yield the sections about what the import does not bring: values, users, running workflows, unread lists."""
    yield from _missing_section("Secrets to set here (their values cannot be read)", report.missing_secrets)
    yield from _missing_section(
        "Environment variables that are neither here nor in the source", report.missing_variables
    )
    yield from _missing_section("Workflows that are neither here nor in the source", report.missing_workflows)
    if report.running:
        yield ""
        yield f"Workflows that run on the source: {sum(each.count for each in report.running):,}. They stay there."
        for each in report.running:
            since = f", the oldest since {each.oldest}" if each.oldest else ""
            yield clean_text(f"  {each.count:>8,}  {each.name}{since}")
    counted = [f"{count} {name}" for name, count in report.access.items() if count]
    if counted:
        yield f"Not imported, because they hold permissions or secrets: {', '.join(counted)}."
    for name, reason in report.not_read.items():
        yield clean_text(f"Not read: {name}. {reason}")


def _missing_section(title: str, missing: Sequence[NeededValue]) -> Iterator[str]:
    if missing:
        yield ""
        yield f"{title}:"
    for each in missing:
        shown = f"needed by {_join(each.users)}" if each.users else "no imported definition names it"
        yield clean_text(f"  {each.name}: {shown}")


def _join(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_LISTED]) + (", …" if len(names) > MAX_LISTED else "")


def summary_line(items: Iterable[PlannedItem], *, is_done: bool) -> str:
    """Return the numbers of objects by outcome."""
    counts = Counter(each.outcome if is_done and each.outcome else each.planned for each in items)
    words = [
        f"{counts[outcome]:,} {done if is_done else planned}" for outcome, done, planned in COUNTED if counts[outcome]
    ]
    return f"{'Result' if is_done else 'Plan'}: {', '.join(words) or 'nothing to import'}."


def report_document(source: str, items: Sequence[PlannedItem], report: SourceReport | None) -> dict[str, Any]:
    """Return the report as a JSON document."""
    counts = Counter(str(each.outcome or each.planned) for each in items)
    document: dict[str, Any] = {
        "source": source,
        "counts": dict(sorted(counts.items())),
        "items": [_item_document(each) for each in items],
    }
    return document | ({} if report is None else asdict(report))


def _item_document(item: PlannedItem) -> dict[str, Any]:
    document: dict[str, Any] = {"kind": item.kind, "name": item.name, "verdict": item.verdict, "planned": item.planned}
    optional = {
        "version": item.version,
        "outcome": item.outcome,
        "changes": list(item.changes),
        "reason": item.reason,
        "findings": [asdict(each) for each in item.findings],
    }
    return document | {name: value for name, value in optional.items() if value}


def clean_text(text: str) -> str:
    """Return a line without control characters, with which a name could change what a terminal shows."""
    return "".join(each if each.isprintable() else "\ufffd" for each in text)
