"""Answers to what a decision asks: rows inside its transaction, scripts between two tries with no lock held."""

import json
from collections.abc import Iterable
from typing import Any

from .. import conf
from ..core.errors import Busy, Refused, ValidationFailed
from ..core.questions import (
    DefinitionNamed,
    DefinitionWritten,
    PolicyNamed,
    Question,
    Script,
    ScriptAnswer,
)
from ..core.snapshot import Run
from ..scripts.pool import Answer, Unavailable, evaluate
from ..store import answers as from_rows
from . import plans


class Answers(dict[Question, Any]):
    """What is known beside the snapshot."""

    def forget_passing(self) -> None:
        """Keep only what stays true when others change the run."""
        for question in [question for question in self if not question.is_lasting]:
            del self[question]

    def learn_from_rows(self, run: Run, questions: Iterable[Question], now: int) -> None:
        """Answer what rows can answer."""
        questions = list(questions)
        self |= from_rows.answer(run, questions, now)
        for question in questions:
            if isinstance(question, DefinitionNamed):
                self[question] = _definition(question, now)
            elif isinstance(question, DefinitionWritten):
                self[question] = _written(question, now)
            elif isinstance(question, PolicyNamed):
                self[question] = plans.task_document(question.name)

    def learn_from_scripts(self, questions: Iterable[Question]) -> None:
        """Run the scripts that are asked for."""
        for question in questions:
            if isinstance(question, Script):
                self[question] = run_script(question)


def run_script(question: Script) -> ScriptAnswer:
    """What the script comes to, in a helper process."""
    try:
        answer = _evaluated(question)
    except Unavailable as busy:
        raise Busy(str(busy)) from busy
    return ScriptAnswer(answer.value, answer.error or "", answer.timed_out)


def _evaluated(question: Script) -> Answer:
    return evaluate(
        question.language,
        question.source,
        json.loads(question.inputs),
        limit_seconds=conf.script_seconds,
        pool_size=conf.script_pool_size,
    )


def _definition(question: DefinitionNamed, now: int) -> Any:
    return plans.find(question.name, question.version, now)


def _written(question: DefinitionWritten, now: int) -> Any:
    try:
        return plans.of_document(json.loads(question.document), now)
    except ValidationFailed as refused:
        return "; ".join(complaint.message for complaint in refused.complaints)
    except Refused as refused:
        return refused.message
