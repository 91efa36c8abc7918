"""Remove the subscriptions of digests by email.

Exempt from the linter: no release has this table. Processes of revisions that send digests are stopped for it.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("conductor", "0007_remove_vector_versions"),
    ]

    operations = [migrations.DeleteModel(name="DigestSubscription")]
