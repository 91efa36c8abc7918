"""What gates and pages say about attempts that wait because a budget is spent."""

from collections.abc import Mapping
from typing import Any

from ..durations import format_timestamp
from .amounts import format_cost, format_tokens, name_budget


def hold_facts(until: int | None, facts: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the facts of the gate `budget` from the row of a hold; none if the attempt is not held."""
    if not until or not facts:
        return {}
    spent, limit = _spent_and_limit(facts)
    return {
        "budget_until": until,
        "budget_name": name_budget(facts["scope"], facts["name"]),
        "budget_spent": spent,
        "budget_limit": limit,
        "budget_by": facts["by"],
        "budget_room_at": format_timestamp(facts["room_at"]) if facts["room_at"] else "",
    }


def _spent_and_limit(facts: Mapping[str, Any]) -> tuple[str, str]:
    """Return the limit that is reached, and what is spent of it."""
    if facts["max_cost"] is not None and facts["spent_cost"] >= facts["max_cost"]:
        return format_cost(facts["spent_cost"]), format_cost(facts["max_cost"])
    return format_tokens(facts["spent_tokens"]), format_tokens(facts["max_tokens"] or 0)
