from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0003_remove_alert_recipients"),
    ]

    operations = [
        migrations.AddField(
            model_name="grant",
            name="is_prefix",
            field=models.BooleanField(db_default=False, default=False, verbose_name="prefix"),
        ),
    ]
