import json
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from django.db import migrations

from conductor_app.access import vault


def create_targets(apps: Any, schema_editor: Any) -> None:
    """Create a target for each webhook and each mailbox of the alerts."""
    targets: dict[tuple[str, str], Any] = {}
    for alert in apps.get_model("conductor", "Alert").objects.order_by("pk"):
        for kind, value in (("webhook", alert.webhook), ("email", alert.mail)):
            if value:
                key = kind, value
                targets[key] = targets.get(key) or _create_target(apps, kind, value, alert)
                alert.targets.add(targets[key])


def _create_target(apps: Any, kind: str, value: str, alert: Any) -> Any:
    model = apps.get_model("conductor", "AlertTarget")
    parts = urlsplit(value)
    host = parts.netloc.rpartition("@")[2]
    is_email = kind == "email"
    shown = {"addresses": value} if is_email else {"host": f"{parts.scheme}://{host}/…"}
    label = (value if is_email else f"Webhook {host}")[:100]
    names = (label if number == 1 else f"{label} ({number})" for number in count(1))
    name = next(each for each in names if not model.objects.filter(name=each).exists())
    seal_name = f"alert target of alert {alert.pk} {kind}"
    sealed = vault.encrypt(seal_name, json.dumps({} if is_email else {"url": value}))
    return model.objects.create(
        kind=kind, name=name, settings=shown, sealed=sealed, seal_name=seal_name, created_by=alert.by[:255]
    )


class Migration(migrations.Migration):
    """Convert the recipients of alerts to targets. The previous release still reads their columns.

    An alert that the previous release creates after this migration has no targets until an operator replaces it.
    """

    dependencies = [
        ("conductor", "0019_alert_targets_and_digests"),
    ]

    operations = [migrations.RunPython(create_targets, migrations.RunPython.noop)]
