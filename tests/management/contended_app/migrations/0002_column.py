from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("contended_app", "0001_table")]
    operations = [migrations.AddField("entry", "text", models.TextField(db_default=""))]
