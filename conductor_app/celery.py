"""The Celery application, for `celery -A conductor_app worker` and `celery -A conductor_app beat`."""

import os

from celery import Celery
from celery.signals import beat_init, setup_logging, worker_init, worker_ready
from kombu.transport import TRANSPORT_ALIASES

from .utils import memory_tuning

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conductor_app.settings.embedded")
TRANSPORT_ALIASES["folder"] = "conductor_app.processes.job_trigger:Transport"
app = Celery("conductor")
app.config_from_object("django.conf:settings", namespace="CELERY")
for ready in (worker_ready, beat_init):
    ready.connect(memory_tuning.tune_garbage_collection)
for begin in (worker_init, beat_init):
    begin.connect(memory_tuning.tune_malloc)


@setup_logging.connect
def keep_logging_configuration(**_: object) -> None:
    """Keep Django's LOGGING: Celery does not configure logging while this signal has a receiver."""
