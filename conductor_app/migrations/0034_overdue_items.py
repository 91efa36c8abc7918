from django.db import migrations, models

from conductor_app.models.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("conductor", "0033_audit_actions"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="message",
            index=models.Index(
                condition=models.Q(("subject__in", ["overdue", "overdue_task"])), fields=["to"], name="message_overdue"
            ),
        ),
    ]
