"""A worker whose tasks call a model: it checks the budgets, calls, and reports."""

from typing import Any

from conductor_app.engine.ai.budgets import hold_if_spent
from conductor_app.engine.ai.integration_settings import ModelSettings
from conductor_app.engine.ai.model_calls import Usage, begin_call, fail_call, save_reply
from conductor_app.models.claimed_attempts import ClaimedAttempt
from tests.scenario import Worker, run_commit_hooks


def settings_of(integration: str = "openai", model: str = "small", **fields: Any) -> ModelSettings:
    """Return the settings of a model."""
    return ModelSettings(integration, "openai", "AI_MODEL", model, "", "", {}, {}, **fields)


class PayingWorker(Worker):
    """Claims the tasks of one type; each of them is one call."""

    def __init__(self, task_type: str = "ask", integration: str = "openai", model: str = "small") -> None:
        super().__init__(task_type, "worker", "")
        self.integration, self.model = integration, model
        self.calls = 0

    def is_held(self) -> bool:
        """Claim a task and check its budgets. Return whether it was put back."""
        assert self.polls(), f"nothing waits for a worker of {self.task_type}"
        with run_commit_hooks():
            is_held = hold_if_spent(self.claimed, self.integration, self.model)
        if is_held:
            self.held = None
        return is_held

    @property
    def claimed(self) -> ClaimedAttempt:
        assert self.held is not None
        return self.held

    def pays(self, prompt: int = 600, completion: int = 400, status: str = "REPLIED") -> None:
        """Call the model for the claimed task, without a report."""
        self.calls += 1
        key = self.claimed.id
        with run_commit_hooks():
            call = begin_call(self.claimed, settings_of(self.integration, self.model), key)
            if status == "FAILED":
                fail_call(call, "no luck")
            else:
                save_reply(call, {"text": "yes"}, Usage(prompt, completion))

    def calls_and_reports(self, **usage: Any) -> None:
        """Claim a task, call the model, and complete the task."""
        assert not self.is_held()
        self.pays(**usage)
        self.completes()
