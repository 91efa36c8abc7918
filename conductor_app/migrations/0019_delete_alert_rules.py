"""Delete the rules on workflows when the migrations are reversed: alerts of the previous version have a view."""

from django.db import migrations


def delete_rules(apps, schema_editor):
    apps.get_model("conductor", "Alert").objects.filter(view__isnull=True).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0018_alert_rules"),
    ]

    operations = [migrations.RunPython(migrations.RunPython.noop, delete_rules)]
