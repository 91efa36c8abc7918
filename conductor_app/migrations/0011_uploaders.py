from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0010_quotas"),
    ]

    operations = [
        migrations.AddField(
            model_name="accessrevision",
            name="has_quotas",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="filehandle",
            name="uploader",
            field=models.CharField(blank=True, db_default="", default="", max_length=320),
        ),
        migrations.AddField(
            model_name="storedpayload",
            name="uploader",
            field=models.CharField(blank=True, max_length=320, null=True),
        ),
    ]
