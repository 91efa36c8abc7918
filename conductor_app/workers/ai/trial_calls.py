"""Calls that a page makes outside of a run."""

from collections.abc import Callable
from typing import TypeVar

from conductor_app import conf
from conductor_app.engine.ai.integration_settings import ModelSettings
from conductor_app.engine.ai.trials import TrialFailed
from conductor_app.workers.ai.chat_request import InputRejected
from conductor_app.workers.ai.provider_errors import CallFailed, without_keys
from conductor_app.workers.socket_deadline import Deadline

TRIAL_SECONDS = 60.0
"""The maximum duration of such a call, for which a person waits."""
ReplyT = TypeVar("ReplyT")


def try_call(settings: ModelSettings, send: Callable[[], ReplyT]) -> ReplyT:
    """Return the reply to a call, which takes at most TRIAL_SECONDS.

    Raises:
        TrialFailed: when there is no reply. Its message contains no secrets.
    """
    seconds = min(TRIAL_SECONDS, conf.ai_task_seconds)
    with Deadline(seconds) as deadline:
        try:
            return send()
        except (CallFailed, InputRejected) as error:
            reason = f"{settings.integration} did not reply within {seconds:g} s" if deadline.has_passed else str(error)
            raise TrialFailed(f"The model could not be called: {without_keys(reason, settings)}.") from None
