"""Secrets of tasks: which ones a worker receives, and how they stay out of what is stored and shown.

1. Who names them. `${workflow.secrets.NAME}` is an expression only where the author of a definition wrote it. A step
   has the names that its author uses (`Step.secrets`, set in `core/document/reading.py`): none if it comes from data,
   as in a dynamic fork; in an inline sub-workflow only those that its parent may name. A task definition also
   requests secrets and environment variables (`runtimeMetadata`, `Step.runtime_metadata`); one from data gets none
   but those that the author of the step may name (`core/secret_places.py:limit_runtime_metadata`).
2. What is stored. A new task has these names in its state (`core/step_types/base.py:new_task`), and the places of the
   author's expressions in its input (`core/secret_places.py:mark_secrets`). The input has expressions, never values.
3. To the worker. `secrets_for_worker` is the only function that inserts values, at these places and when the task is
   claimed. Nothing stores its result.
4. Back. Values in what a worker sends are replaced by `***` before it is stored. `secret_names` has the names for all.

   | worker              | output          | reason of a failure | line of the log   |
   |---------------------|-----------------|---------------------|-------------------|
   | external            | `redact_report` | `redact_report`     | `redact_verbatim` |
   | of a Django project | `redact_report` | `redact_work`       | `redact_verbatim` |
   | built-in            | `redact_work`   | `redact_work`       | `redact_work`     |

   `redact_report` and `redact_verbatim` replace literal occurrences of 8 characters and more; for a caller who may not
   claim the task, nothing. `redact_work` replaces all spellings of 4 characters and more, because these texts come from
   libraries, and in messages and failed outputs also masked values, which have no names there. The report then passes
   `redact_report`.

Masked fields are no secrets: they are values of a run that are encrypted before they are stored
(`payloads/store.py`), and shown as `***` (`core/masking.py`). `access/secrets.py` has the secrets themselves.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..access.authentication import current_actor, may_claim
from ..access.secrets import load_secrets, load_variables, redact, redact_verbatim
from ..core.data_requests import SecretValues
from ..core.decide import Report
from ..core.primitives import JsonValue
from ..core.secret_places import SECRET_PLACES, Keys, Place, resolve_places, restore_places
from ..core.snapshot import RUNTIME_METADATA, Task
from ..runs.documents.tasks import definition_documents
from .store import ClaimedAttempt


class WorkerSecrets(NamedTuple):
    """What a worker receives and nothing stores.

    `input`: the input of its task with the secrets in it, or None if it has none. `runtime_metadata`: the secrets and
    environment variables beside the input, by name.
    """

    input: Any
    runtime_metadata: dict[str, str]


def secrets_for_worker(attempt: ClaimedAttempt, requested: Iterable[object] = ()) -> WorkerSecrets:
    """Return the values of the secrets of a claimed attempt, for its worker.

    `requested`: the `runtimeMetadata` of its task definition. Workers of this server need none.
    """
    places, names = secret_places_of(attempt), [name for name in requested if isinstance(name, str)]
    given = None
    if places:
        readable = load_secrets(attempt.task.step_state.get("secrets", ()))
        given = resolve_places(attempt.input, places, readable.get)
    if not names:
        return WorkerSecrets(given, {})
    values = load_secrets(names)
    values |= load_variables(set(names) - values.keys())
    return WorkerSecrets(given, {name: values[name] for name in names if name in values})


def secret_places_of(attempt: ClaimedAttempt) -> Sequence[Place]:
    """Return the places of the secrets in the input of a claimed attempt."""
    if "workflow.secrets" not in attempt.input_text:
        return ()
    state = attempt.task.step_state
    if SECRET_PLACES in state or not state.get("secrets"):
        return state.get(SECRET_PLACES, ())
    # The task was created by a version that did not record the places.
    step = definition_documents(attempt.run.resolved_definition_id).step_document(attempt.task.ref)
    template = (step.get("taskDefinition") or {}).get("inputTemplate")
    return restore_places(step.get("inputParameters"), template, attempt.input)


def confidential_paths(attempt: ClaimedAttempt) -> list[Keys]:
    """Return the paths of the secrets and of the masked values in the input of a claimed attempt."""
    return [*(tuple(keys) for keys, _ in secret_places_of(attempt)), *attempt.masked_paths]


def secret_names(step_state: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the secrets and variables that the worker of a task receives, from the state of the task."""
    return (*step_state.get("secrets", ()), *step_state.get(RUNTIME_METADATA, ()))


def redact_work(attempt: ClaimedAttempt, value: JsonValue, *, with_masked: bool = True) -> Any:
    """Return what a worker of this server sends for an attempt, with all spellings of its secrets redacted.

    `with_masked`: also the masked values of its input. Outputs are masked by name, but messages have no names.
    """
    return redact(value, secret_names(attempt.task.step_state), tuple(attempt.masked) if with_masked else ())


def secrets_to_redact(task: Task) -> SecretValues | None:
    """Return the request for the secrets of a task that the caller may know, or None if there are none."""
    names = frozenset((*secret_names(task.step_state), *task.step.runtime_metadata))
    return SecretValues(names) if names and _may_know(task.attempt.queue, task.attempt.domain) else None


def redact_report(report: Report, secrets: Iterable[str]) -> Report:
    """Return a report with literal occurrences of these secrets redacted."""
    values = list(secrets)
    return replace(report, output=redact_verbatim(report.output, values), reason=redact_verbatim(report.reason, values))


def secrets_of_log(step_state: Mapping[str, Any], queue: str, domain: str) -> Iterable[str]:
    """Return the secrets to redact in a log line that the caller adds to a task, from the row of the task."""
    return load_secrets(secret_names(step_state) if _may_know(queue, domain) else ()).values()


def _may_know(queue: str, domain: str) -> bool:
    """Return True if the caller may claim the task. To any other, `***` would confirm that it has guessed a secret."""
    actor = current_actor()
    return actor is None or may_claim(actor, queue, domain)
