"""Queries about integrations, prompts, calls of models, and what the calls use over time."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Sum

from ...access.visibility import usable
from ...core.ai import OWN_VECTOR_DATABASES
from ...settings import conf
from ...utils.formatting import HOUR_RANGE, TimeRange
from ..models import Integration, IntegrationModel, ModelCall, ModelUsage, Prompt
from ..store import calls_below

MAX_MODELS = 1_000
MAX_ROWS = 20
"""The rows of a table."""
MAX_CALLS = 20_000
"""The newest calls of a range that the table of runs counts."""
FILTERS = ("integration", "model", "definition", "caller")
SUMS = ("calls", "failures", "prompt_tokens", "completion_tokens", "cost", "duration_ms")


def list_integrations(category: str = "", active_only: bool = False) -> QuerySet[Integration]:
    """Return the integrations by name, without their secrets. `category`: a category, or empty for all."""
    rows = Integration.objects.defer("sealed").order_by("name")
    rows = rows.filter(category=category) if category else rows
    return rows.filter(is_enabled=True) if active_only else rows


def models_of(integrations: Iterable[str], active_only: bool = False) -> dict[str, list[IntegrationModel]]:
    """Return the models of integrations, by the name of the integration. Those without models are omitted."""
    rows = IntegrationModel.objects.filter(integration__in=list(integrations)).order_by("name")
    found: dict[str, list[IntegrationModel]] = {}
    for row in rows.filter(is_enabled=True) if active_only else rows:
        found.setdefault(row.integration, []).append(row)
    return found


def count_models(integrations: Iterable[str]) -> dict[str, int]:
    """Return the number of models of each integration that has some."""
    rows = IntegrationModel.objects.filter(integration__in=list(integrations)).order_by()
    return dict(rows.values_list("integration").annotate(count=Count("pk")))


def newest_prompts() -> QuerySet[Prompt]:
    """Return the newest version of each prompt, by name."""
    newer = Prompt.objects.filter(name=OuterRef("name"), version__gt=OuterRef("version"))
    return Prompt.objects.filter(~Exists(newer)).order_by("name")


def versions_of(name: str) -> QuerySet[Prompt]:
    """Return all versions of a prompt, newest first."""
    return Prompt.objects.filter(name=name).order_by("-version")


def prompt_names() -> frozenset[str]:
    """Return the names of the prompts that the current actor may use."""
    return frozenset(usable(Prompt.objects.order_by()).values_list("name", flat=True).distinct())


def tokens_by_model(integration: str) -> dict[str, int]:
    """Return the tokens of the recorded calls of an integration, by model."""
    rows = ModelUsage.objects.filter(integration=integration).order_by()
    return dict(rows.values_list("model").annotate(tokens=Sum(F("prompt_tokens") + F("completion_tokens"))))


def prompts_bound_to(integration: str, model: str) -> list[Prompt]:
    """Return the newest versions of the prompts that are bound to a model."""
    bound = {f"{integration}:{model}", integration, model}
    # The column is JSON text; the exact comparison follows.
    rows = newest_prompts().filter(~Q(integrations=[]))
    return [row for row in rows if not bound.isdisjoint(row.integrations)]


def names_and_models() -> dict[str, frozenset[str]]:
    """Return the models of every usable integration, by its name, with those that need no row. Empty: any model."""
    names = [
        *usable(Integration.objects.all()).values_list("name", flat=True),
        *environment_integrations(),
        *OWN_VECTOR_DATABASES,
    ]
    found = models_of(names)
    return {name: frozenset(row.name for row in found.get(name, ())) for name in names}


def environment_integrations() -> dict[str, tuple[str, str]]:
    """Return API key and base URL of each integration that the server's environment defines, by its name."""
    given = {
        "openai": (conf.ai_openai_api_key, conf.ai_openai_base_url),
        "anthropic": (conf.ai_anthropic_api_key, conf.ai_anthropic_base_url),
        "ollama": ("", conf.ai_ollama_url),
    }
    return {name: (key, url) for name, (key, url) in given.items() if key or url}


def enabled_models() -> list[str]:
    """Return the enabled models of all integrations as `integration:model`."""
    enabled = Integration.objects.filter(is_enabled=True).values("name")
    rows = IntegrationModel.objects.filter(integration__in=enabled, is_enabled=True).order_by("integration", "name")
    return [str(row) for row in rows[:MAX_MODELS]]


def calls_of_attempt(attempt_id: str) -> list[ModelCall]:
    """Return the calls of an attempt without their replies, oldest first."""
    return list(ModelCall.objects.filter(attempt_id=attempt_id).defer("reply").order_by("started_at", "id"))


@dataclass(frozen=True, slots=True)
class UsageSums:
    """Sums over calls. `cost`: in millionths of the currency."""

    calls: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: int = 0
    duration_ms: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def mean_ms(self) -> int | None:
        """Return the mean duration of a call, or None without calls."""
        return self.duration_ms // self.calls if self.calls else None


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One row of a table: its names, and its sums."""

    names: tuple[str, ...]
    sums: UsageSums


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The usage in a range, with the filters of a reader applied. `bars`: the sums of each bar of the range."""

    bars: Sequence[UsageSums]
    models: Sequence[UsageRow]
    definitions: Sequence[UsageRow]
    callers: Sequence[UsageRow]
    runs: Sequence[UsageRow]
    is_cut: bool

    @property
    def total(self) -> UsageSums:
        return UsageSums(**{name: sum(getattr(each, name) for each in self.bars) for name in SUMS})


def usage_report(
    time_range: TimeRange, filters: Mapping[str, str], definitions: Collection[str] | None = None
) -> UsageReport:
    """Return the usage in a range. `filters`: values of the columns FILTERS. Runs five queries.

    `definitions`: the workflows whose calls count; None for all calls, also those outside of runs.

    The range of an hour is read from the calls, the others from the sums per hour.
    """
    given: dict[str, Any] = {name: value for name, value in filters.items() if name in FILTERS and value}
    if definitions is not None:
        given["definition__in"] = definitions
    runs, is_cut = _runs(time_range, given)
    return UsageReport(
        _bars(time_range, given),
        _table(time_range, given, "integration", "model"),
        _table(time_range, given, "definition"),
        _table(time_range, given, "caller"),
        runs,
        is_cut,
    )


def usage_of_run(run_id: str, root_id: str) -> UsageSums:
    """Return what the calls of a run and of the runs below it have used. `root_id`: the run at the top of its tree."""
    calls = ModelCall.objects.filter(calls_below(run_id, root_id))
    return UsageSums(**_read_sums(calls.aggregate(**_sums_of_calls())))


def usage_of_definition(name: str, since: int) -> UsageSums:
    """Return what the runs of a workflow have used since a time in epoch milliseconds, in full hours."""
    rows = ModelUsage.objects.filter(definition=name, hour__gte=since)
    return UsageSums(**_read_sums(rows.aggregate(**_sums_of_hours())))


def _bars(time_range: TimeRange, filters: Mapping[str, Any]) -> list[UsageSums]:
    rows, moment, sums = _source(time_range, filters)
    place = (F(moment) - time_range.since) / time_range.step
    found = {row.pop("place"): row for row in rows.annotate(place=place).order_by().values("place").annotate(**sums)}
    return [UsageSums(**_read_sums(found.get(number, {}))) for number in range(time_range.count)]


def _table(time_range: TimeRange, filters: Mapping[str, Any], *columns: str) -> list[UsageRow]:
    rows, _moment, sums = _source(time_range, filters)
    return _top_rows(rows, sums, columns)


def _runs(time_range: TimeRange, filters: Mapping[str, Any]) -> tuple[list[UsageRow], bool]:
    """Return the runs that have used most, and whether only the newest calls were counted."""
    in_range = ModelCall.objects.filter(started_at__gte=time_range.since, started_at__lt=time_range.until, **filters)
    in_range = in_range.exclude(run_id="")
    newest = in_range.order_by("-started_at").values("pk")[:MAX_CALLS]
    rows = _top_rows(ModelCall.objects.filter(pk__in=newest), _sums_of_calls(), ("run_id", "definition"))
    is_cut = in_range.order_by("-started_at").values("pk")[MAX_CALLS : MAX_CALLS + 1].exists()
    return rows, is_cut


def _top_rows(rows: QuerySet[Any], sums: Mapping[str, Any], columns: Sequence[str]) -> list[UsageRow]:
    grouped = rows.order_by().values(*columns).annotate(**sums)
    top = grouped.order_by("-cost_sum", "-prompt_tokens_sum", "-calls_sum", *columns)[:MAX_ROWS]
    return [UsageRow(tuple(row[column] for column in columns), UsageSums(**_read_sums(row))) for row in top]


def _source(time_range: TimeRange, filters: Mapping[str, Any]) -> tuple[QuerySet[Any], str, dict[str, Any]]:
    """Return the rows of a range, the column of their time, and the sums over them."""
    if time_range.name == HOUR_RANGE:
        calls = ModelCall.objects.filter(started_at__gte=time_range.since, started_at__lt=time_range.until, **filters)
        return calls.filter(ended_at__isnull=False), "started_at", _sums_of_calls()
    rows = ModelUsage.objects.filter(hour__gte=time_range.since, hour__lt=time_range.until, **filters)
    return rows, "hour", _sums_of_hours()


def _sums_of_hours() -> dict[str, Any]:
    return {f"{name}_sum": Sum(name) for name in SUMS}


def _sums_of_calls() -> dict[str, Any]:
    return {
        "calls_sum": Count("pk"),
        "failures_sum": Count("pk", filter=Q(status__in=("FAILED", "LOST"))),
        "prompt_tokens_sum": Sum("prompt_tokens"),
        "completion_tokens_sum": Sum("completion_tokens"),
        "cost_sum": Sum("cost"),
        "duration_ms_sum": Sum(F("ended_at") - F("started_at")),
    }


def _read_sums(row: Mapping[str, Any]) -> dict[str, int]:
    return {name: int(row.get(f"{name}_sum") or 0) for name in SUMS}
