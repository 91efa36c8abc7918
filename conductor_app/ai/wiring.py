"""What the server connects of this slice when it starts."""

from collections.abc import Iterable
from importlib.util import find_spec

from ..access.visibility import register_audited_rows
from ..alerts.queries import register_subject
from ..core.alerts import BUDGET
from ..core.step_types import STEP_TYPES
from ..core.step_types.ai import AiTask
from ..definitions.validation import ModelNames, register_model_names
from ..runs.store.writing import on_delete_run
from ..settings import conf
from ..system_tasks.network_guard import register_self_test
from ..system_tasks.registry import BuiltInWorker, register_workers, workers_in
from ..utils.background import BackgroundWork, register
from .commands.budgets import connect_model_limits, end_budget_holds, prune_holds
from .commands.calls import discard_unused_replies, lose_abandoned_calls, prune_usage
from .commands.integrations import reencrypt_integrations
from .queries.budgets import BudgetSubject, audited_budgets, connect_budget_holds
from .queries.usage import names_and_models, prompt_names
from .store import delete_calls_of_run

PACKAGES = ("openai", "anthropic", "httpx2", "httpcore2", "mcp", "numpy")
"""Packages of the extra `ai`. If one is missing, the server executes no AI task."""
BACKGROUND_WORK = BackgroundWork(
    sweeps={"release_budget_holds": end_budget_holds},
    deletions=(lambda limit: prune_holds(), prune_usage),
    prune=(discard_unused_replies, lose_abandoned_calls),
    reencrypt=(reencrypt_integrations,),
)


def connect() -> None:
    """Connect budgets, alerts on them, the names for lint, and the workers of AI tasks."""
    register(BACKGROUND_WORK)
    connect_model_limits()
    connect_budget_holds()
    register_subject(BUDGET, BudgetSubject())
    register_audited_rows("budget", audited_budgets)
    register_model_names(ModelNames(names_and_models, prompt_names))
    on_delete_run(delete_calls_of_run)
    if executes_ai_tasks():
        types = [step_type.type for step_type in STEP_TYPES.values() if isinstance(step_type, AiTask)]
        register_workers(types, load_workers, are_slow=True)
        register_self_test(require_effective_guard)


def executes_ai_tasks() -> bool:
    """Return True if the setting AI_TASKS is on and the extra `ai` is installed.

    Otherwise the types of AI tasks are ordinary task types, for which workers can poll.
    """
    return conf.ai_tasks and all(find_spec(package) for package in PACKAGES)


def load_workers() -> Iterable[BuiltInWorker]:
    """Return the workers of AI tasks, which a process imports when it first executes tasks."""
    from .workers import tasks, vectors

    return workers_in((tasks, vectors))


def require_effective_guard() -> None:
    """Raise GuardIneffective unless the HTTP library of AI tasks asks the network guard."""
    from .workers import guarded_http

    guarded_http.require_effective_guard()
