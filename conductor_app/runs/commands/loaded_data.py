"""Data for the requests of a decision: rows are read in its transaction, scripts run between two transactions."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...access.encryption import decrypt_masked
from ...access.grants import starter_refusal
from ...access.secrets import load_secrets
from ...core import data_requests
from ...core.definition import Definition
from ...core.errors import Busy
from ...core.primitives import JsonValue
from ...core.snapshot import Run
from ...definitions import resolved_definitions
from ...definitions.schemas import check_against_schema
from ...payloads import commands as payload_storage
from ...payloads.store import digest_value
from ...scripts.pool import ScriptsUnavailable, evaluate
from ..store import data
from ..store.data import ExternalPayload, MaskedPayload, item_lists


class PayloadsNotLoaded(Exception):
    """Data requests need payloads in blob storage that were not loaded yet."""

    def __init__(self, paths: set[str]) -> None:
        self.paths = paths
        super().__init__(", ".join(sorted(paths)))


class LoadedData(dict[data_requests.DataRequest, Any]):
    """Data that was loaded for a decision, by request.

    `contents`: payloads from blob storage, by path. `stored_paths`: paths in blob storage, by digest of the payload.
    `named`: paths that a client sent, by attempt or run and part.
    """

    def __init__(self, named: Mapping[tuple[str, str], str] | None = None) -> None:
        super().__init__()
        self.contents: dict[str, Any] = {}
        self.stored_paths: dict[str, str] = {}
        self.named = named or {}

    def forget_transient(self) -> None:
        """Discard the data that a concurrent change of the run can invalidate."""
        for request in [request for request in self if not request.is_lasting]:
            del self[request]

    def load_from_rows(self, run: Run, requests: Iterable[data_requests.DataRequest], now: int) -> None:
        """Load the data that the database holds.

        Raises:
            PayloadsNotLoaded: when payloads must be read from blob storage first.
        """
        requests = list(requests)
        found = data.load_requested(run, requests, now)
        if missing := {each.path for each in _external_payload_paths(found.values()) if each.path not in self.contents}:
            raise PayloadsNotLoaded(missing)
        self |= {request: self._substitute(request, value) for request, value in found.items()}
        for request in requests:
            if isinstance(request, data_requests.DefinitionByName):
                self[request] = self.definition_by_name(request, now)
            elif isinstance(request, data_requests.InlineDefinition):
                self[request] = self.inline_definition(request, now)
            elif isinstance(request, data_requests.UsePermission):
                self[request] = starter_refusal(run.starter_id, request.target_type, request.name)
            elif isinstance(request, data_requests.SecretValues):
                self[request] = load_secrets(request.names)
            elif isinstance(request, data_requests.SchemaCheck):
                self[request] = check_against_schema(request)
            elif isinstance(request, data_requests.TaskDefinitionByName):
                self[request] = resolved_definitions.task_document(request.name)

    def _substitute(self, request: data_requests.DataRequest, value: JsonValue) -> Any:
        if isinstance(request, data_requests.ListItem) and isinstance(value, ExternalPayload | MaskedPayload):
            item_lists.value.put(request.attempt_id, self._load_external(value)["items"])
            return item_lists.value.item(request.attempt_id, request.index)
        return self._load_external(value)

    def _load_external(self, value: Any) -> Any:
        """Return the answer with its payloads from blob storage filled in and its masked payloads decrypted."""
        match value:
            case ExternalPayload():
                return self.contents[value.path]
            case MaskedPayload():
                return decrypt_masked(value.value)
            case data_requests.TaskOutcome(output=ExternalPayload() | MaskedPayload()):
                return replace(value, output=self._load_external(value.output))
            case [data_requests.TaskOutcome(), *_]:
                return [self._load_external(outcome) for outcome in value]
            case (seq, (ExternalPayload() | MaskedPayload()) as output):
                return (seq, self._load_external(output))
        return value

    def definition_by_name(self, request: data_requests.DefinitionByName, now: int) -> Definition | None:
        return resolved_definitions.resolve_by_name(request.name, request.version, now)

    def inline_definition(self, request: data_requests.InlineDefinition, now: int) -> Definition | str:
        """Return the resolved definition for an inline document, or the error message for it."""
        return resolved_definitions.resolve_inline(request.document, request.allowed_secrets, now)

    def evaluate_scripts(self, requests: Iterable[data_requests.DataRequest]) -> None:
        """Run the requested scripts and read the requested payloads. Called without locks, because both can be slow."""
        for request in requests:
            if isinstance(request, data_requests.ScriptEvaluation):
                self[request] = run_script(request)
            elif isinstance(request, data_requests.StoredPayloadContent):
                value = self.contents[request.path] = payload_storage.load_unmasked_payload(request.path)
                # If another task receives this payload as its input, it is not stored twice.
                self.stored_paths[digest_value(value)] = request.path

    def keep(self, texts: Mapping[str, str]) -> None:
        """Store payloads that are too large for rows in blob storage."""
        for name, text in texts.items():
            self.stored_paths[name] = payload_storage.store_payload("engine", text)


def _external_payload_paths(values: Iterable[Any]) -> Iterator[ExternalPayload]:
    for value in values:
        match value:
            case ExternalPayload():
                yield value
            case data_requests.TaskOutcome(output=ExternalPayload() as output) | (_, ExternalPayload() as output):
                yield output
            case [data_requests.TaskOutcome(), *_]:
                yield from _external_payload_paths(value)


def run_script(request: data_requests.ScriptEvaluation) -> data_requests.ScriptResult:
    """Run a script in a helper process and return its result.

    Raises:
        Busy: when no helper process is available.
    """
    inputs, name, owner = json.loads(request.inputs), request.definition, request.starter_id
    try:
        result = evaluate(request.language, request.source, inputs, key=name, owner=owner)
    except ScriptsUnavailable as busy:
        raise Busy(str(busy)) from busy
    return data_requests.ScriptResult(result.value, result.error or "", result.timed_out)
