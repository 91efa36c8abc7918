"""What gates and pages say about attempts that wait because a budget has no room."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from ..durations import format_timestamp
from .amounts import format_cost, format_tokens, name_budget


def hold_facts(until: int | None, facts: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the facts of the gate `budget` from the row of a hold; none if the attempt is not held."""
    if not until or not facts:
        return {}
    spent, limit = _spent_and_limit(facts)
    lacks = facts.get("lacks")
    return {
        "budget_until": until,
        "budget_name": name_budget(facts["scope"], facts["name"]),
        "budget_spent": spent,
        "budget_limit": limit,
        "budget_reserved": _amount(lacks, facts[f"reserved_{lacks}"]) if lacks else "",
        "budget_by": facts["by"],
        "budget_room_at": format_timestamp(facts["room_at"]) if facts["room_at"] else "",
    }


def refusal_of(facts: Mapping[str, Any]) -> str:
    """Return why a call that cannot wait is refused."""
    spent, limit = _spent_and_limit(facts)
    words = {"budget": name_budget(facts["scope"], facts["name"]), "spent": spent, "limit": limit}
    if lacks := facts.get("lacks"):
        words["reserved"] = _amount(lacks, facts[f"reserved_{lacks}"])
        return (
            _(
                "%(budget)s has no room for this call beside the open ones: %(spent)s of %(limit)s are spent, and "
                "%(reserved)s reserved. Try again when they have ended."
            )
            % words
        )
    return _("%(budget)s is spent: %(spent)s of %(limit)s. Raise the budget, or try again in its next period.") % words


def _spent_and_limit(facts: Mapping[str, Any]) -> tuple[str, str]:
    """Return what is spent, and the limit that is reached or too tight."""
    kind = facts.get("lacks")
    if not kind:
        has_no_cost = facts["max_cost"] is not None and facts["spent_cost"] >= facts["max_cost"]
        kind = "cost" if has_no_cost else "tokens"
    return _amount(kind, facts[f"spent_{kind}"]), _amount(kind, facts[f"max_{kind}"] or 0)


def _amount(kind: str, count: int) -> str:
    return format_cost(count) if kind == "cost" else format_tokens(count)
