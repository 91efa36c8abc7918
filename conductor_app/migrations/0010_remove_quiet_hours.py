"""Remove the quiet hours of alerts.

Exempt from the linter: no release has these columns. Processes of revisions that read them are stopped for it.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0009_remove_attempt_retrying"),
    ]

    operations = [
        migrations.RemoveField(model_name="alert", name="quiet_from"),
        migrations.RemoveField(model_name="alert", name="quiet_until"),
        migrations.RemoveField(model_name="alert", name="zone"),
    ]
