"""Answers to what a decision asks: rows inside its transaction, scripts between two tries with no lock held."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from .. import conf
from ..access.masking import decrypt_masked
from ..core.data_requests import (
    DataRequest,
    DefinitionByName,
    InlineDefinition,
    ListItem,
    SchemaCheck,
    ScriptEvaluation,
    ScriptResult,
    StoredPayloadContent,
    TaskDefinitionByName,
    TaskOutcome,
)
from ..core.definition import Definition
from ..core.errors import Busy
from ..core.snapshot import Run
from ..scripts.pool import EvaluationResult, ScriptsUnavailable, evaluate
from ..store import data_queries as from_rows
from ..store.data_queries import ExternalPayload, MaskedPayload
from ..store.foreach_item_cache import item_lists
from ..store.payload_placement import digest_value
from . import payloads, resolved_definitions
from .json_schema import check_against_schema


class PayloadsNotLoaded(Exception):
    """Payloads are kept elsewhere and have to be read before the questions can be answered."""

    def __init__(self, paths: set[str]) -> None:
        self.paths = paths
        super().__init__(", ".join(sorted(paths)))


class LoadedData(dict[DataRequest, Any]):
    """What is known beside the snapshot.

    `contents`: payloads that are kept elsewhere, by their paths; `kept`: their paths, by their digests; `named`: paths
    that a client has named, by what is there.
    """

    def __init__(self, named: Mapping[tuple[str, str], str] | None = None) -> None:
        super().__init__()
        self.contents: dict[str, Any] = {}
        self.stored_paths: dict[str, str] = {}
        self.named = named or {}

    def forget_transient(self) -> None:
        """Keep only what stays true when others change the run."""
        for request in [request for request in self if not request.is_lasting]:
            del self[request]

    def learn_from_rows(self, run: Run, requests: Iterable[DataRequest], now: int) -> None:
        """Answer what rows can answer; raises Missing."""
        requests = list(requests)
        found = from_rows.load_requested(run, requests, now)
        if missing := {each.path for each in _external_payload_paths(found.values()) if each.path not in self.contents}:
            raise PayloadsNotLoaded(missing)
        self |= {request: self._substitute(request, value) for request, value in found.items()}
        for request in requests:
            if isinstance(request, DefinitionByName):
                self[request] = self.definition_by_name(request, now)
            elif isinstance(request, InlineDefinition):
                self[request] = self.inline_definition(request, now)
            elif isinstance(request, SchemaCheck):
                self[request] = check_against_schema(request)
            elif isinstance(request, TaskDefinitionByName):
                self[request] = resolved_definitions.task_document(request.name)

    def _substitute(self, request: DataRequest, value: Any) -> Any:
        if isinstance(request, ListItem) and isinstance(value, ExternalPayload | MaskedPayload):
            item_lists.keep(request.attempt_id, self._load_external(value)["items"])
            return item_lists.item(request.attempt_id, request.index)
        return self._load_external(value)

    def _load_external(self, value: Any) -> Any:
        """The answer with the payloads put in that are kept elsewhere, and those opened that were sealed."""
        match value:
            case ExternalPayload():
                return self.contents[value.path]
            case MaskedPayload():
                return decrypt_masked(value.value)
            case TaskOutcome(output=ExternalPayload() | MaskedPayload()):
                return replace(value, output=self._load_external(value.output))
            case [TaskOutcome(), *_]:
                return [self._load_external(outcome) for outcome in value]
            case (seq, (ExternalPayload() | MaskedPayload()) as output):
                return (seq, self._load_external(output))
        return value

    def definition_by_name(self, request: DefinitionByName, now: int) -> Definition | None:
        """The plan of a definition that is found by its name."""
        return resolved_definitions.resolve_by_name(request.name, request.version, now)

    def inline_definition(self, request: InlineDefinition, now: int) -> Definition | str:
        """The plan of a definition that is given in place, or the complaint about it."""
        return resolved_definitions.resolve_inline(request.document, now)

    def learn_from_scripts(self, requests: Iterable[DataRequest]) -> None:
        """Run the scripts that are asked for, and read the payloads that are kept elsewhere: what takes its time."""
        for request in requests:
            if isinstance(request, ScriptEvaluation):
                self[request] = run_script(request)
            elif isinstance(request, StoredPayloadContent):
                value = self.contents[request.path] = payloads.load_unmasked_payload(request.path)
                # Written down again, as the input of another task, it need not be kept twice.
                self.stored_paths[digest_value(value)] = request.path

    def keep(self, texts: Mapping[str, str]) -> None:
        """Keep payloads elsewhere that are too large for rows."""
        for name, text in texts.items():
            self.stored_paths[name] = payloads.store_payload("engine", text)


def _external_payload_paths(values: Iterable[Any]) -> Iterator[ExternalPayload]:
    for value in values:
        match value:
            case ExternalPayload():
                yield value
            case TaskOutcome(output=ExternalPayload() as output) | (_, ExternalPayload() as output):
                yield output
            case [TaskOutcome(), *_]:
                yield from _external_payload_paths(value)


def run_script(request: ScriptEvaluation) -> ScriptResult:
    """What the script comes to, in a helper process."""
    try:
        result = _evaluate_script(request)
    except ScriptsUnavailable as busy:
        raise Busy(str(busy)) from busy
    return ScriptResult(result.value, result.error or "", result.timed_out)


def _evaluate_script(request: ScriptEvaluation) -> EvaluationResult:
    return evaluate(
        request.language,
        request.source,
        json.loads(request.inputs),
        limit_seconds=conf.script_seconds,
        pool_size=conf.script_pool_size,
    )
