from django.db import migrations, models

from conductor_app.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("conductor", "0023_fairness"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(
                    ("status", "PENDING"),
                    models.Q(("queue", ""), _negated=True),
                    models.Q(("fairness_key", ""), _negated=True),
                ),
                fields=["queue", "-priority", "fairness_key", "visible_at", "id"],
                name="attempt_by_fairness_key",
            ),
        ),
    ]
