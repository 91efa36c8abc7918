"""The way in for Celery: `celery -A conductor_app worker` and `celery -A conductor_app beat`."""

import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging
from kombu.transport import TRANSPORT_ALIASES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conductor_app.settings.embedded")
TRANSPORT_ALIASES["folder"] = "conductor_app.background.folder:Transport"
app = Celery("conductor")
app.config_from_object("django.conf:settings", namespace="CELERY")


@setup_logging.connect
def leave_logging_alone(**_: Any) -> None:
    """Keep Django's LOGGING: Celery sets up nothing of its own while somebody listens to this signal."""
