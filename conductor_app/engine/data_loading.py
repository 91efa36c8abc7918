"""Data for the requests of a decision: rows are read in its transaction, scripts run between two transactions."""

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
    """Data requests need payloads in blob storage that were not loaded yet."""

    def __init__(self, paths: set[str]) -> None:
        self.paths = paths
        super().__init__(", ".join(sorted(paths)))


class LoadedData(dict[DataRequest, Any]):
    """Data that was loaded for a decision, by request.

    `contents`: payloads from blob storage, by path. `kept`: paths in blob storage, by digest of the payload. `named`:
    paths that a client sent, by the part and the digest of their payload.
    """

    def __init__(self, named: Mapping[tuple[str, str], str] | None = None) -> None:
        super().__init__()
        self.contents: dict[str, Any] = {}
        self.kept: dict[str, str] = {}
        self.named = named or {}

    def forget_passing(self) -> None:
        """Discard the data that a concurrent change of the run can invalidate."""
        for question in [question for question in self if not question.is_lasting]:
            del self[question]

    def learn_from_rows(self, run: Run, questions: Iterable[DataRequest], now: int) -> None:
        """Load the data that the database holds.

        Raises:
            PayloadsNotLoaded: when payloads must be read from blob storage first.
        """
        questions = list(questions)
        found = from_rows.load_requested(run, questions, now)
        if missing := {each.path for each in _external_payload_paths(found.values()) if each.path not in self.contents}:
            raise PayloadsNotLoaded(missing)
        self |= {question: self._answer(question, answer) for question, answer in found.items()}
        for question in questions:
            if isinstance(question, DefinitionByName):
                self[question] = self.definition_named(question, now)
            elif isinstance(question, InlineDefinition):
                self[question] = self.definition_written(question, now)
            elif isinstance(question, SchemaCheck):
                self[question] = check_against_schema(question)
            elif isinstance(question, TaskDefinitionByName):
                self[question] = resolved_definitions.task_document(question.name)

    def _answer(self, question: DataRequest, answer: Any) -> Any:
        if isinstance(question, ListItem) and isinstance(answer, ExternalPayload | MaskedPayload):
            item_lists.keep(question.attempt_id, self._whole(answer)["items"])
            return item_lists.item(question.attempt_id, question.index)
        return self._whole(answer)

    def _whole(self, answer: Any) -> Any:
        """Return the answer with its payloads from blob storage filled in and its masked payloads decrypted."""
        match answer:
            case ExternalPayload():
                return self.contents[answer.path]
            case MaskedPayload():
                return decrypt_masked(answer.value)
            case TaskOutcome(output=ExternalPayload() | MaskedPayload()):
                return replace(answer, output=self._whole(answer.output))
            case [TaskOutcome(), *_]:
                return [self._whole(outcome) for outcome in answer]
            case (seq, (ExternalPayload() | MaskedPayload()) as output):
                return (seq, self._whole(output))
        return answer

    def definition_named(self, question: DefinitionByName, now: int) -> Definition | None:
        """Return the resolved definition for a name and version."""
        return resolved_definitions.resolve_by_name(question.name, question.version, now)

    def definition_written(self, question: InlineDefinition, now: int) -> Definition | str:
        """Return the resolved definition for an inline document, or the error message for it."""
        return resolved_definitions.resolve_inline(question.document, now)

    def learn_from_scripts(self, questions: Iterable[DataRequest]) -> None:
        """Run the requested scripts and read the requested payloads. Called without locks, because both can be slow."""
        for question in questions:
            if isinstance(question, ScriptEvaluation):
                self[question] = run_script(question)
            elif isinstance(question, StoredPayloadContent):
                value = self.contents[question.path] = payloads.load_unmasked_payload(question.path)
                # If another task receives this payload as its input, it is not stored twice.
                self.kept[digest_value(value)] = question.path

    def keep(self, texts: Mapping[str, str]) -> None:
        """Store payloads that are too large for rows in blob storage."""
        for name, text in texts.items():
            self.kept[name] = payloads.store_payload("engine", text)


def _external_payload_paths(answers: Iterable[Any]) -> Iterator[ExternalPayload]:
    for answer in answers:
        match answer:
            case ExternalPayload():
                yield answer
            case TaskOutcome(output=ExternalPayload() as output) | (_, ExternalPayload() as output):
                yield output
            case [TaskOutcome(), *_]:
                yield from _external_payload_paths(answer)


def run_script(question: ScriptEvaluation) -> ScriptResult:
    """Run a script in a helper process and return its result.

    Raises:
        Busy: when no helper process is available.
    """
    try:
        answer = _evaluate_script(question)
    except ScriptsUnavailable as busy:
        raise Busy(str(busy)) from busy
    return ScriptResult(answer.value, answer.error or "", answer.timed_out)


def _evaluate_script(question: ScriptEvaluation) -> EvaluationResult:
    return evaluate(
        question.language,
        question.source,
        json.loads(question.inputs),
        limit_seconds=conf.script_seconds,
        pool_size=conf.script_pool_size,
    )
