from django.db import migrations, models

import conductor_app.db.fields


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0028_name_of_sweep"),
    ]

    operations = [
        migrations.AddField(
            model_name="integration",
            name="last_test",
            field=conductor_app.db.fields.DocumentField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="failuregroup",
            name="issue_url",
            field=models.CharField(blank=True, db_default="", default="", max_length=500),
        ),
    ]
