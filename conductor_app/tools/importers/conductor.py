"""The import from a Conductor server: read its lists, plan them, and report what cannot be read.

The report also has the workflows that still run on the source.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from ...access.commands.secrets import list_variables, secret_names
from ...definitions.models import WorkflowDefinition
from ...definitions.sources.kinds import (
    DefinitionKind,
    HandlerKind,
    PlannedObject,
    ScheduleKind,
    TaskKind,
    WorkflowKind,
)
from . import compatibility
from .plan import KINDS, CompatibilityFinding, ImportPlan, Outcome, PlannedItem, Verdict
from .source import AccessDenied, ConnectionBroke, HttpSource, NotOffered, SourceError

OPEN = "status IN (RUNNING,PAUSED)"
PAGE_SIZE = 100


@dataclass(frozen=True, slots=True)
class RunningWorkflows:
    """The open runs of one definition. `oldest`: when the first of them started, in ISO format."""

    name: str
    count: int
    oldest: str


def find_running(source: HttpSource, names: Iterable[str]) -> list[RunningWorkflows]:
    """Return the open runs by definition, most first. The number of requests grows with the definitions, not the runs.

    `names`: the definitions to look for if there are many open runs.

    Raises:
        SourceError: when the source cannot search, for example because it has no index.
    """
    first = _search(source, OPEN, PAGE_SIZE)
    results, total = first["results"], first["totalHits"]
    if total <= len(results):
        found = _count(results)
    else:
        found = [each for name in names if "'" not in name and (each := _of_definition(source, name)).count]
        if (rest := total - sum(each.count for each in found)) > 0:
            found.append(RunningWorkflows("(of definitions that the source no longer has)", rest, ""))
    return sorted(found, key=lambda each: (-each.count, each.name))


def _of_definition(source: HttpSource, name: str) -> RunningWorkflows:
    page = _search(source, f"workflowType='{name}' AND {OPEN}", 1)
    return RunningWorkflows(name, page["totalHits"], _start_of(page["results"][0]) if page["results"] else "")


def _search(source: HttpSource, query: str, size: int) -> dict[str, Any]:
    page = source.get("/workflow/search", start=0, size=size, sort="startTime:ASC", freeText="*", query=query)
    results = page.get("results") if isinstance(page, dict) else None
    total = page.get("totalHits") if isinstance(page, dict) else None
    if not isinstance(results, list) or not isinstance(total, int):
        raise SourceError("The reply of /workflow/search is not a page of results.")
    return {"results": [each for each in results if isinstance(each, dict)], "totalHits": total}


def _count(results: list[dict[str, Any]]) -> list[RunningWorkflows]:
    starts: dict[str, list[str]] = {}
    for each in results:
        starts.setdefault(str(each.get("workflowType")), []).append(_start_of(each))
    return [RunningWorkflows(name, len(times), min(filter(None, times), default="")) for name, times in starts.items()]


def _start_of(result: dict[str, Any]) -> str:
    """Return the start of a run. Servers write it as text or in milliseconds."""
    start = result.get("startTime")
    if isinstance(start, int) and 0 < start < 2**50:
        return datetime.fromtimestamp(start / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return start[:30] if isinstance(start, str) else ""


MAX_FINDINGS = 50
MAX_USERS = 20
LISTS = {
    "schemas": "/schema",
    "tasks": "/metadata/taskdefs",
    "form-templates": "/human/template",
    "workflows": "/metadata/workflow",
    "variables": "/environment",
    "event-handlers": "/event",
    "schedules": "/scheduler/schedules",
}
"""The list of each kind. Tags have one list per definition."""
REQUIRED = ("tasks", "workflows")
"""Lists that every Conductor server has."""
ACCESS_LISTS = {
    "users": "/users",
    "groups": "/groups",
    "applications": "/applications",
    "webhooks": "/metadata/webhook",
}
"""What is counted, and not imported: values that must be kept secret belong to it."""
TAG_PATHS = {"workflow": "/metadata/workflow/{}/tags", "task": "/metadata/task/{}/tags"}


@dataclass(frozen=True, slots=True)
class NeededValue:
    """A secret, variable or workflow that definitions need and that is not here.

    `users`: the definitions and steps.
    """

    name: str
    is_in_source: bool
    users: Sequence[str] = ()


@dataclass
class SourceReport:
    """What the source has besides the objects of the plan.

    `not_read`: the lists that could not be read, with the reason. `access`: the numbers of users and similar objects.
    """

    not_read: dict[str, str] = field(default_factory=dict)
    access: dict[str, int] = field(default_factory=dict)
    missing_secrets: list[NeededValue] = field(default_factory=list)
    missing_variables: list[NeededValue] = field(default_factory=list)
    missing_workflows: list[NeededValue] = field(default_factory=list)
    running: list[RunningWorkflows] = field(default_factory=list)


class ConductorImport:
    """One import: call `read`, then use the plan and the report."""

    def __init__(self, source: HttpSource, plan: ImportPlan, only: Iterable[str] = ()) -> None:
        self.source, self.plan, self.report = source, plan, SourceReport()
        self._only = frozenset(only)
        self._documents: dict[str, list[Any]] = {}
        self._uses: dict[str, dict[str, list[str]]] = {"secrets": {}, "variables": {}, "workflows": {}}
        self._names: dict[str, set[str]] = {"workflow": set(), "task": set()}

    def read(self, progress: Callable[[str], None] = lambda text: None) -> None:
        """Read the source, and plan its objects.

        Raises:
            SourceError: when it is not a Conductor server, refuses the caller, or cannot be reached.
        """
        for kind in sorted(KINDS, key=lambda kind: kind.plural not in REQUIRED):
            if kind.plural in LISTS and self._is_wanted(kind):
                progress(f"Reading {kind.plural} …")
                self._documents[kind.plural] = self._read_list(kind.plural)
        self._read_missing_versions()
        self._remember_templates()
        for kind in KINDS:
            progress(f"Comparing {kind.plural} …")
            for document in self._documents.get(kind.plural, ()):
                self.plan.add(kind, document, self._examine)
        if not self._only or "tags" in self._only:
            progress("Reading tags …")
            self._plan_tags()
        progress("Reading names of secrets and running workflows …")
        self._read_rest()

    def _is_wanted(self, kind: DefinitionKind) -> bool:
        # The input templates of task definitions are needed to check workflows.
        return not self._only or kind.plural in self._only or (kind.plural == "tasks" and "workflows" in self._only)

    def _read_list(self, name: str) -> list[Any]:
        """Return the documents of a list. A list that breaks off is read again once."""
        for is_last in (False, True):
            try:
                return self.source.list(LISTS[name])
            except (NotOffered, AccessDenied) as error:
                if name in REQUIRED and isinstance(error, AccessDenied):
                    raise
                if name in REQUIRED:
                    raise SourceError(f"{error} Is {self.source.url} the API of a Conductor server?") from None
                if isinstance(error, AccessDenied):
                    self.report.not_read[name] = str(error)
                return []
            except SourceError as error:
                if isinstance(error, ConnectionBroke) and not is_last:
                    continue
                if name in REQUIRED:
                    raise
                self.report.not_read[name] = str(error)
                return []
        return []

    def _read_missing_versions(self) -> None:
        """Read the versions of workflows that the list leaves out: some servers list the newest ones only."""
        if "workflows" not in self._documents:
            return
        try:
            index = self.source.get("/metadata/workflow/names-and-versions")
        except SourceError:
            return
        listed = {(each.get("name"), each.get("version") or 1) for each in self._objects("workflows")}
        for name, versions in sorted(index.items()) if isinstance(index, dict) else ():
            for each in versions if isinstance(versions, list) else ():
                version = each.get("version") if isinstance(each, dict) else None
                if isinstance(version, int) and (name, version) not in listed:
                    self._read_version(name, version)

    def _read_version(self, name: str, version: int) -> None:
        try:
            document = self.source.get(f"/metadata/workflow/{quote(name, safe='')}", version=version)
        except SourceError as error:
            self.report.not_read[f"workflow definition {name}, version {version}"] = str(error)
            return
        self._documents["workflows"].append(document)

    def _objects(self, name: str) -> Iterator[dict[str, Any]]:
        return (each for each in self._documents.get(name, ()) if isinstance(each, dict))

    def _remember_templates(self) -> None:
        """Collect the input templates of the source's task definitions, against which workflows are checked."""
        for document in self._objects("tasks"):
            name, template = document.get("name"), document.get("inputTemplate")
            if isinstance(name, str) and isinstance(template, dict) and template:
                self.plan.context.input_templates[name] = template
        if self._only and "tasks" not in self._only:
            self._documents.pop("tasks", None)

    def _examine(self, kind: DefinitionKind, wanted: PlannedObject) -> Sequence[CompatibilityFinding]:
        document = wanted.document
        found: list[CompatibilityFinding] = []
        if isinstance(kind, WorkflowKind):
            self._names["workflow"].add(wanted.name)
            found = compatibility.workflow_findings(document)
        elif isinstance(kind, TaskKind):
            self._names["task"].add(wanted.name)
        elif isinstance(kind, HandlerKind):
            found = compatibility.handler_findings(document)
        elif isinstance(kind, ScheduleKind):
            found = compatibility.schedule_findings(document)
        self._remember_uses("secrets", wanted, compatibility.secret_uses(document))
        self._remember_uses("variables", wanted, compatibility.variable_uses(document))
        self._remember_uses("workflows", wanted, compatibility.workflow_uses(document))
        return found[:MAX_FINDINGS]

    def _remember_uses(self, what: str, wanted: PlannedObject, uses: dict[str, list[str]]) -> None:
        for name, steps in uses.items():
            users = self._uses[what].setdefault(name, [])
            for step in steps:
                user = f"{wanted.name} (step {step})" if step else wanted.name
                if user not in users and len(users) < MAX_USERS:
                    users.append(user)

    def _plan_tags(self) -> None:
        """Plan the tags of definitions, if the source has tags at all."""
        try:
            if not self.source.get("/metadata/tags"):
                return
        except NotOffered:
            return
        except SourceError as error:
            self.report.not_read["tags"] = str(error)
            return
        tag_kind = next(kind for kind in KINDS if kind.plural == "tags")
        for of, path in TAG_PATHS.items():
            for name in sorted(self._names[of]):
                try:
                    found = self.source.get(path.format(quote(name, safe="")))
                except SourceError as error:
                    self.report.not_read[f"tags of {of} {name}"] = str(error)
                    continue
                if found:
                    self.plan.add(tag_kind, {"of": of, "name": name, "tags": found})

    def _read_rest(self) -> None:
        secrets = self._read_names("secrets", "/secrets")
        self.report.missing_secrets = self._missing("secrets", secrets, secret_names())
        kind = next(kind for kind in KINDS if kind.plural == "variables")
        variables = [item.name for item in self.plan.items if item.kind == kind.label]
        self.report.missing_variables = self._missing("variables", [], [*list_variables(), *variables])
        here = WorkflowDefinition.objects.filter(name__in=list(self._uses["workflows"])).values_list("name", flat=True)
        self.report.missing_workflows = self._missing("workflows", [], {*here, *self._names["workflow"]})
        for name, path in ACCESS_LISTS.items():
            try:
                self.report.access[name] = len(self.source.list(path))
            except NotOffered:
                continue
            except SourceError as error:
                self.report.not_read[name] = str(error)
        try:
            self.report.running = find_running(self.source, sorted(self._names["workflow"]))
        except SourceError as error:
            self.report.not_read["running workflows"] = str(error)

    def _read_names(self, what: str, path: str) -> list[str]:
        """Return names that are listed for the caller, and, where a server distinguishes them, all names."""
        found: set[str] = set()
        try:
            found |= {each for each in self.source.get(path) or () if isinstance(each, str)}
            if self.source.options.token or self.source.options.key:
                found |= {each for each in self.source.post(path) or () if isinstance(each, str)}
        except NotOffered:
            pass
        except (SourceError, TypeError) as error:
            self.report.not_read[what] = str(error)
        return sorted(found)

    def _missing(self, what: str, in_source: Iterable[str], here: Iterable[str]) -> list[NeededValue]:
        uses, there, present = self._uses[what], set(in_source), set(here)
        names: Any = sorted((there | uses.keys()) - present)
        return [NeededValue(name, name in there, tuple(uses.get(name, ()))) for name in names]


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


def report_document(source: str, items: Sequence[PlannedItem], report: SourceReport) -> dict[str, Any]:
    """Return the report as a JSON document."""
    counts = Counter(str(each.outcome or each.planned) for each in items)
    document: dict[str, Any] = {
        "source": source,
        "counts": dict(sorted(counts.items())),
        "items": [_item_document(each) for each in items],
    }
    return document | asdict(report)


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
