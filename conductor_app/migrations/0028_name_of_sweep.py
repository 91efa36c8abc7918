"""Rename the last pass of a sweep. A process of the previous version writes a row of the former name until it ends."""

from django.db import migrations


def rename_pass(apps, schema_editor):
    passes = apps.get_model("conductor", "SweepPass").objects.using(schema_editor.connection.alias)
    passes.filter(name="expire_leases").update(name="handle_due_timers")


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0027_run_failed_before"),
    ]

    operations = [
        migrations.RunPython(rename_pass, migrations.RunPython.noop),
    ]
