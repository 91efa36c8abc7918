"""Add the mark of people who may sign in by single sign-on without a group."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0010_remove_quiet_hours"),
    ]

    operations = [
        migrations.AddField(
            model_name="userprofile",
            name="is_invited",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
