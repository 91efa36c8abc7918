"""Remove the index of the list of attempts that are retried."""

from django.db import migrations

from conductor_app.db.migration_operations import RemoveIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("conductor", "0008_remove_digests"),
    ]

    operations = [RemoveIndexWithoutLock(model_name="attempt", name="attempt_retrying")]
