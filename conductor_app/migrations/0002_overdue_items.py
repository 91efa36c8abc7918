from django.db import migrations, models

from conductor_app.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    # The name of this migration before the first release.
    replaces = [("conductor", "0034_overdue_items")]

    dependencies = [
        ("conductor", "0001_initial"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="message",
            index=models.Index(
                condition=models.Q(("subject__in", ["overdue", "overdue_task"])), fields=["to"], name="message_overdue"
            ),
        ),
    ]
