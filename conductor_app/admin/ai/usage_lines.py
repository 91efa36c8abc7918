"""One line about the calls of models of a run, or of the runs of a workflow."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ...insight.ai.amounts import format_cost, format_tokens
from ...insight.ai.budget_states import run_budget_share
from ...insight.ai.usage_report import UsageSums, usage_of_definition, usage_of_run
from ...insight.durations import DAY
from ...insight.numbers import format_count
from ...models import Run


def model_use_of_run(run: Run) -> str:
    """Return the calls, tokens and cost of a run and those below it, and the spent share of its budget, if any."""
    root_id = run.root_id or run.pk
    line = describe_usage(usage_of_run(run.pk, root_id))
    share = run_budget_share(run.pk, run.name, root_id)
    if share is None:
        return line
    return _("%(usage)s (%(percent)s %% of its budget)") % {"usage": line, "percent": int(share * 100)}


def model_use_of_workflow(name: str, now: int) -> str:
    """Return the calls, tokens and cost of the runs of a workflow in 30 days, or an empty text without calls."""
    sums = usage_of_definition(name, now - 30 * DAY)
    return describe_usage(sums) if sums.calls else ""


def describe_usage(sums: UsageSums) -> str:
    """Return sums in one line, such as `12 calls, 34,000 tokens, $0.12`."""
    calls = ngettext("%(count)s call", "%(count)s calls", sums.calls)
    count = format_count(sums.calls)
    return ", ".join([calls % {"count": count}, format_tokens(sums.tokens), format_cost(sums.cost)])
