from django.db import migrations, models

from conductor_app.core.snapshot import NEVER
from conductor_app.models.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    # CREATE INDEX CONCURRENTLY cannot run in a transaction.
    atomic = False

    dependencies = [
        ("conductor", "0008_server_clocks"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="message",
            index=models.Index(condition=models.Q(("due_at", NEVER)), fields=["to", "id"], name="message_undelivered"),
        ),
    ]
