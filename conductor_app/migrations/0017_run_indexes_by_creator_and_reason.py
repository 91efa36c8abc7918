from django.db import migrations, models

from conductor_app.models.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("conductor", "0016_room_for_updates"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="run", index=models.Index(fields=["started_by", "-created_at"], name="run_by_creator")
        ),
        AddIndexWithoutLock(
            model_name="run",
            index=models.Index(
                condition=models.Q(("reason", ""), _negated=True),
                fields=["-created_at", "name"],
                name="run_with_reason_by_start",
            ),
        ),
    ]
