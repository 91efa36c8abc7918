"""Entry point of `make metrics`: write the table of docs/reference/metrics.md from the metrics in the code."""

import os
import re
from pathlib import Path

import django

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "metrics.md"
BEGIN, END = "<!-- metrics: written by `make metrics` -->", "<!-- end -->"
BLOCK = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)

NOTES: dict[str, tuple[str, str]] = {
    "conductor_attempts_ended_total": ("attempts", "The share of `FAILED`, `FAILED_FOR_GOOD` and `TIMED_OUT` rises."),
    "conductor_claim_seconds": ("seconds", "The 99th percentile is above 0.5 s: the database is slow or overloaded."),
    "conductor_database_pool_available": ("connections", "0 for long, together with waiting threads."),
    "conductor_database_pool_size": ("connections", "The sum of all processes approaches `max_connections`."),
    "conductor_database_pool_waiting": (
        "threads",
        "Above 0 for minutes: raise `DATABASE_POOL`, or find slow statements.",
    ),
    "conductor_database_up": ("0 or 1", "0: requests fail, and no timer fires."),
    "conductor_model_call_seconds": ("seconds", "The 95th percentile rises: the provider is slow or overloaded."),
    "conductor_model_calls_total": ("calls", "The share of `failed` rises: keys, limits or the provider."),
    "conductor_model_cost_total": ("`AI_CURRENCY`", "It rises faster than your budget allows."),
    "conductor_model_tokens_total": ("tokens", "Prompt tokens per call rise: histories or documents grow."),
    "conductor_outbox_messages": ("messages", "It rises steadily: deliveries fail or are too slow."),
    "conductor_outbox_oldest_seconds": ("seconds", "Above 300: a receiver is not reachable, or deliveries fail."),
    "conductor_queue_depth": ("attempts", "It rises steadily: workers are missing, too few or too slow."),
    "conductor_queue_oldest_seconds": ("seconds", "Above the time that your users accept; the alert uses 900."),
    "conductor_report_seconds": (
        "seconds",
        "The 99th percentile is above 1 s: the database is slow, or runs are very large.",
    ),
    "conductor_runs_ended_total": ("runs", "The share of `FAILED` and `TIMED_OUT` rises."),
    "conductor_runs_started_total": ("runs", "It falls to 0 although clients should start runs."),
    "conductor_sweep_failed": ("0 or 1", "1 for minutes: the log has the error under `sweep_failed`."),
    "conductor_sweep_handled_total": ("rows", "–"),
    "conductor_sweep_lag_seconds": ("seconds", "Above 30: timers, retries and timeouts are late."),
    "conductor_sweep_last_pass_seconds": (
        "seconds",
        "Above 60, or three times the interval of sweeps that run less often.",
    ),
    "conductor_undelivered_messages": ("messages", "Above 0: an operator must retry or discard them."),
    "conductor_waiting_polls": ("polls", "0 while work waits: workers do not reach the server."),
}
"""Unit, and when to worry, of each metric."""


def render_table() -> str:
    """Return the table of all metrics, between the marks of the page."""
    from tests.monitoring.exported_metrics import exported_metrics

    rows = [
        f"| `{metric.name}` | {metric.type} | {', '.join(f'`{label}`' for label in metric.labels) or '–'} | "
        f"{NOTES[metric.name][0]} | {metric.help} | {NOTES[metric.name][1]} |"
        for metric in exported_metrics()
    ]
    head = "| metric | type | labels | unit | meaning | when to worry |\n|---|---|---|---|---|---|"
    return "\n".join([BEGIN, head, *rows, END])


def refresh(page: str) -> str:
    """Return the text of the page with the current table."""
    return BLOCK.sub(lambda _: render_table(), page)


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conductor_app.settings.testing")
    django.setup()
    PAGE.write_text(refresh(PAGE.read_text()))
    print(f"Wrote {PAGE.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
