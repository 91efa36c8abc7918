from django.db import migrations, models

from conductor_app.models.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("conductor", "0006_sign_in"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="message",
            index=models.Index(
                condition=models.Q(("subject", "terminate")), fields=["to"], name="message_to_terminate"
            ),
        ),
        AddIndexWithoutLock(
            model_name="run",
            index=models.Index(
                condition=models.Q(("status__in", ["PAUSED", "RUNNING"]), models.Q(("root_id", ""), _negated=True)),
                fields=["root_id"],
                name="open_run_by_root",
            ),
        ),
    ]
