"""Logging configuration, with lines as text for a terminal or as JSON for a collector."""

import logging
import sys
from typing import Any

import orjson
import structlog
from structlog.typing import EventDict, Processor

from conductor_app.telemetry.log_context import merge_context

QUIET = (
    "django.request",
    "django.server",
    "celery",
    "celery.beat",
    "kombu",
    "urllib3",
    "gunicorn",
    "redis",
    "psycopg",
    "axes",
    # Their lines contain the addresses of requests, which may have secrets.
    "httpx2",
    "httpcore2",
    "azure",
    "botocore",
    "google",
    "openai",
    "anthropic",
    "mcp",
)


def omit_request(_: Any, __: str, line: EventDict) -> EventDict:
    """Remove the request that Django adds: its query may have the signature of a link. The text has its path."""
    line.pop("request", None)
    return line


SHARED: list[Processor] = [
    merge_context,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.stdlib.ExtraAdder(),
    omit_request,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


class RepeatedFailureFilter(logging.Filter):
    """Drops repeated failures within 30 seconds, because a sweep fails twice per second while a fault lasts."""

    SECONDS = 30.0

    def __init__(self) -> None:
        super().__init__()
        self._logged_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return False if the same failure was logged shortly before."""
        facts = record.__dict__.pop("data", {})
        failure = f"{facts.get('name')}: {facts.get('exc')}" if facts else record.getMessage()
        if record.created - self._logged_at.get(failure, 0.0) < self.SECONDS:
            return False
        self._logged_at = {each: at for each, at in self._logged_at.items() if record.created - at < self.SECONDS}
        self._logged_at[failure] = record.created
        return True


class RefusedRequestFilter(logging.Filter):
    """Removes the traceback of refused requests (400, 403, 404).

    Their line names the reason, and any caller can cause it. The filter belongs to the handler, because Django reports
    a wrong host under a logger of its own.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True after the removal."""
        if getattr(record, "status_code", 500) < 500:
            record.exc_info = None
        return True


def logging_config(level: str, style: str) -> dict[str, Any]:
    """Return Django's LOGGING. All lines go to standard error; libraries only log warnings and errors."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": SHARED,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderer(style)],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["refused"]}},
        "root": {"handlers": ["stderr"], "level": level},
        "filters": {"once": {"()": RepeatedFailureFilter}, "refused": {"()": RefusedRequestFilter}},
        "loggers": {name: {"level": max(level, "WARNING", key=_severity)} for name in QUIET}
        | {
            name: {"filters": ["once"]}
            for name in ("celery.app.trace", "celery.beat", "conductor_app.web.client_views")
        },
    }


def _severity(level: str) -> int:
    return ("DEBUG", "INFO", "WARNING", "ERROR").index(level)


def _renderer(style: str) -> list[Processor]:
    if style == "json":
        as_text = structlog.processors.JSONRenderer(
            serializer=lambda event, **_: orjson.dumps(event, default=str).decode()
        )
        return [structlog.processors.format_exc_info, as_text]
    return [
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
    ]
