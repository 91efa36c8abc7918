from django.db import migrations, models

from conductor_app.db.migration_operations import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("contended_app", "0002_column")]
    operations = [AddIndexWithoutLock("entry", models.Index(fields=["text"], name="entry_by_text"))]
