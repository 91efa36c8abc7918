"""Remove the versions of indexes of vectors, with which processes recognized outdated copies in their memory.

Exempt from the linter: no release has this table. Processes of revisions that write it are stopped for it.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0006_identities"),
    ]

    operations = [migrations.DeleteModel(name="VectorIndexVersion")]
