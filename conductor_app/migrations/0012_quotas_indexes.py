from django.db import migrations, models

from conductor_app.models.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("conductor", "0011_uploaders"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="run",
            index=models.Index(
                condition=models.Q(("status__in", ["PAUSED", "RUNNING"]), models.Q(("starter_id", 0), _negated=True)),
                fields=["starter_id"],
                name="open_run_by_starter",
            ),
        ),
        AddIndexWithoutLock(
            model_name="storedpayload",
            index=models.Index(
                condition=models.Q(("uploader__isnull", False)),
                fields=["uploader", "expires_at", "size"],
                name="payload_by_uploader",
            ),
        ),
    ]
