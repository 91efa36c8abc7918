"""A worker whose tasks call a model: it begins the call if its budgets have room, gets a reply, and reports."""

from typing import Any

from conductor_app.ai.commands.budgets import CallHeld, begin_call
from conductor_app.ai.commands.calls import Usage, call_key, estimate_call, fail_call, save_reply
from conductor_app.ai.commands.integrations import ModelSettings
from conductor_app.ai.models import IntegrationModel, ModelCall
from conductor_app.tasks.store import ClaimedAttempt
from tests.scenario import Worker, run_commit_hooks


def settings_of(integration: str = "openai", model: str = "small", **fields: Any) -> ModelSettings:
    """Return the settings of a model, with its stored prices."""
    row = IntegrationModel.objects.filter(integration=integration, name=model).first()
    prices = {"input_price": row.input_price, "output_price": row.output_price} if row else {}
    return ModelSettings(integration, "openai", "AI_MODEL", model, "", "", {}, {}, **{**prices, **fields})


class PayingWorker(Worker):
    """Claims the tasks of one type; each of them is one call."""

    def __init__(self, task_type: str = "ask", integration: str = "openai", model: str = "small") -> None:
        super().__init__(task_type, "worker", "")
        self.integration, self.model = integration, model
        self.calls = 0
        self.call: ModelCall | None = None

    def is_held(self, prompt: int = 600, completion: int = 400) -> bool:
        """Claim a task and begin its call, which may use this many tokens. Return whether it was put back."""
        assert self.polls(), f"nothing waits for a worker of {self.task_type}"
        return not self.begins(prompt, completion)

    def begins(self, prompt: int = 600, completion: int = 400) -> bool:
        """Begin the call of the claimed task. Return False if the task was put back."""
        settings = settings_of(self.integration, self.model)
        try:
            with run_commit_hooks():
                key = call_key(self.claimed, "question")
                self.call = begin_call(self.claimed, settings, key, estimate_call(settings, prompt, completion))
        except CallHeld:
            self.held = None
            return False
        return True

    @property
    def claimed(self) -> ClaimedAttempt:
        assert self.held is not None
        return self.held

    def pays(self, prompt: int = 600, completion: int = 400, status: str = "REPLIED") -> None:
        """End the call of the claimed task, without a report. Begin it, unless it is open."""
        if self.call is None:
            assert self.begins(prompt, completion)
        assert self.call is not None
        self.calls += 1
        with run_commit_hooks():
            if status == "FAILED":
                fail_call(self.call, "no luck")
            else:
                save_reply(self.call, {"text": "yes"}, Usage(prompt, completion))
        self.call = None

    def calls_and_reports(self, **usage: Any) -> None:
        """Claim a task, call the model, and complete the task."""
        assert not self.is_held(**usage)
        self.pays(**usage)
        self.completes()
