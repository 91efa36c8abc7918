from django.db import migrations, models

import conductor_app.db.fields


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0020_one_open_attempt_per_task"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="traceparent",
            field=models.CharField(blank=True, max_length=55, null=True),
        ),
        migrations.AddField(
            model_name="run",
            name="traced_at",
            field=conductor_app.db.fields.MomentField(null=True),
        ),
    ]
