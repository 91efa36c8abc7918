
import conductor_app.models.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Add alert targets, the incidents of alerts, and subscriptions to digests."""

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('conductor', '0018_drop_run_with_reason'),
    ]

    operations = [
        migrations.AddField(
            model_name='alert',
            name='incident_at',
            field=conductor_app.models.fields.MomentField(null=True),
        ),
        migrations.AddField(
            model_name='alertfiring',
            name='answer',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
        migrations.AddField(
            model_name='alertfiring',
            name='recipient',
            field=models.CharField(blank=True, db_default='', default='', max_length=120),
        ),
        migrations.AlterField(
            model_name='alertfiring',
            name='alert',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='firings', to='conductor.alert'),
        ),
        migrations.CreateModel(
            name='AlertTarget',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', conductor_app.models.fields.MomentField(default=0)),
                ('created_by', models.CharField(blank=True, default='', max_length=255)),
                ('updated_at', conductor_app.models.fields.MomentField(default=0)),
                ('updated_by', models.CharField(blank=True, default='', max_length=255)),
                ('name', models.CharField(max_length=120, unique=True)),
                ('kind', models.CharField(max_length=16)),
                ('settings', conductor_app.models.fields.DocumentField(default=dict)),
                ('sealed', models.TextField(blank=True, default='')),
                ('seal_name', models.CharField(max_length=64)),
            ],
            options={
                'ordering': ['name'],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ('slack', 'teams', 'pagerduty', 'opsgenie', 'webhook', 'email'))), name='alert_target_kind_is_known')],
            },
        ),
        migrations.AddField(
            model_name='alert',
            name='targets',
            field=models.ManyToManyField(related_name='alerts', to='conductor.alerttarget'),
        ),
        migrations.AddField(
            model_name='alertfiring',
            name='target',
            field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='conductor.alerttarget'),
        ),
        migrations.CreateModel(
            name='DigestSubscription',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='digest', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('period', models.CharField(max_length=16)),
                ('zone', models.CharField(default='UTC', max_length=64)),
                ('language', models.CharField(default='en', max_length=16)),
                ('next_at', conductor_app.models.fields.MomentField(default=9007199254740991)),
            ],
            options={
                'indexes': [models.Index(fields=['next_at'], name='digest_due')],
                'constraints': [models.CheckConstraint(condition=models.Q(('period__in', ('daily', 'weekly'))), name='digest_period_is_known')],
            },
        ),
    ]
