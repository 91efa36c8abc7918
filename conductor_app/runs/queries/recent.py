"""Human-readable keys of runs: lists show them in place of ids."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, F, Q, QuerySet, When

from ...core.masking import REDACTED
from ...models import Run
from ...models.fields import DocumentField

MAX_KEY_LENGTH = 60
MAX_INPUT_BYTES = 4_000
"""Inputs larger than this are not read for a key."""
SHORT_ID_LENGTH = 4
MAX_KEYS = 1_000


@dataclass(frozen=True, slots=True)
class RunKey:
    """The key of a run. `field`: the path of the input value that it is; empty for a correlation id or a short id."""

    text: str
    field: str = ""


def short_id(id: str) -> str:
    """Return the end of an id. Ids begin with their time, so that those of one day look alike."""
    return f"…{id[-SHORT_ID_LENGTH:]}" if len(id) > SHORT_ID_LENGTH else id


def annotate_key_inputs(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Annotate runs with the inputs that `run_key` reads: small ones of runs without a correlation id."""
    is_needed = Q(correlation_id="", input_size__lte=MAX_INPUT_BYTES)
    return runs.annotate(key_input=Case(When(is_needed, then=F("input")), output_field=DocumentField(null=True)))


def run_key(run: Run) -> RunKey:
    """Return the correlation id of a run, or the first scalar value of its input, or the end of its id.

    A number is preceded by the name of its field, because it says little alone: `order 4711`.
    The input is read only if `annotate_key_inputs` has loaded it.
    """
    if run.correlation_id:
        return RunKey(_shorten(run.correlation_id))
    for path, value in _scalars(getattr(run, "key_input", None)):
        return RunKey(_shorten(value), path)
    return RunKey(short_id(run.pk))


def run_keys(ids: Iterable[str]) -> dict[str, RunKey]:
    """Return the keys of the runs with these ids, by id. Runs one query, or none without ids."""
    wanted = list(dict.fromkeys(id for id in ids if id))[:MAX_KEYS]
    if not wanted:
        return {}
    rows = annotate_key_inputs(Run.objects.filter(pk__in=wanted).only("id", "correlation_id"))
    return {run.pk: run_key(run) for run in rows}


def keys_of(runs: Collection[Run]) -> dict[str, RunKey]:
    """Return the keys of loaded runs, by id. Runs one query for those without a correlation id."""
    known = {run.pk: run_key(run) for run in runs if run.correlation_id}
    return known | run_keys(run.pk for run in runs if not run.correlation_id)


def _scalars(input: Any) -> Iterator[tuple[str, str]]:
    """Yield the paths and values of an input: first those of the upper level, then those one level below."""
    if not isinstance(input, Mapping):
        return
    public = [(name, value) for name, value in input.items() if not name.startswith("_")]
    for name, value in public:
        if text := _scalar_text(name, value):
            yield name, text
    for name, value in public:
        for inner, nested in value.items() if isinstance(value, Mapping) else ():
            if text := _scalar_text(inner, nested):
                yield f"{name}.{inner}", text


def _scalar_text(name: str, value: Any) -> str:
    """Return a text or a number as text. Masked values, truth values and blank texts identify no run."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{name} {value}"
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return "" if REDACTED in text else text


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_KEY_LENGTH else f"{text[: MAX_KEY_LENGTH - 1]}…"
