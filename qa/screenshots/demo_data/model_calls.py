"""A week of calls of models: usage, budgets that are spent or nearly, and indexes of vectors."""

from conductor_app.ai.commands.budgets import BudgetLimits, save_budget
from conductor_app.ai.commands.vectors import Document, Place, store_documents
from conductor_app.ai.models import ModelCall, ModelUsage
from conductor_app.runs.models import Run

HOUR = 3_600_000
MODELS = (("openai", "gpt-5-mini", 250), ("anthropic", "claude-sonnet", 3_000), ("local", "llama", 0))
WORKFLOWS = ("product_return", "support_agent")
CALLERS = ("shop", "olga")


def create_model_calls(now: int) -> None:
    """Create the usage of a week, calls of the last hour, budgets, and two indexes."""
    this_hour = now - now % HOUR
    rows = []
    for back in range(24 * 7):
        for number, (integration, model, price) in enumerate(MODELS):
            calls = 3 + (back * 7 + number * 5) % 11
            prompt, completion = calls * 1_800, calls * 240
            rows.append(
                ModelUsage(
                    hour=this_hour - back * HOUR,
                    integration=integration,
                    model=model,
                    definition=WORKFLOWS[(back + number) % 2],
                    caller=CALLERS[back % 2],
                    calls=calls,
                    failures=int((back + number) % 9 == 0),
                    prompt_tokens=prompt,
                    completion_tokens=completion,
                    cost=(prompt + 4 * completion) * price // 1000,
                    duration_ms=calls * (900 + 300 * number),
                )
            )
    ModelUsage.objects.bulk_create(rows)
    runs = list(Run.objects.order_by("-created_at").values_list("pk", "name", "version", "started_by")[:8])
    ModelCall.objects.bulk_create(
        ModelCall(
            id=f"call-{number}",
            request_key=f"{number}",
            run_id=run_id,
            root_id=run_id,
            task_id=run_id,
            attempt_id=run_id,
            reference="answer",
            task_type="LLM_CHAT_COMPLETE",
            definition=name,
            version=version,
            caller=caller,
            integration="openai",
            model="gpt-5-mini",
            status="REPLIED",
            prompt_tokens=4_000 * (number % 5 + 1),
            completion_tokens=600,
            cost=1_800 * (number % 5 + 1),
            started_at=now - number * 90_000,
            ended_at=now - number * 90_000 + 1_400,
        )
        for number in range(30)
        for run_id, name, version, caller in [runs[number % len(runs)]]
    )
    for limits in (
        BudgetLimits("ALL", "", "MONTH", max_cost=60_000_000),
        BudgetLimits("DEFINITION", "support_agent", "DAY", max_tokens=20_000),
        BudgetLimits("RUN", "", "RUN", max_cost=500_000, max_tokens=200_000),
    ):
        save_budget(limits, "olga")
    day = save_budget(BudgetLimits("INTEGRATION", "openai", "WEEK", max_cost=1_000_000), "olga")
    save_budget(BudgetLimits("INTEGRATION", "openai", "WEEK", max_cost=max(day.spent_cost * 10 // 9, 1)), "olga")
    for namespace, count in (("en", 40), ("de", 12)):
        documents = [Document(f"page-{number}", [0.1] * 256, "The return policy. " * 20) for number in range(count)]
        store_documents(Place("default", "handbook", namespace), documents)
