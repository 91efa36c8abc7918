from django.db import migrations


class Migration(migrations.Migration):
    """Add the permission to debug runs."""

    dependencies = [
        ('conductor', '0024_breakpoints'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='grant',
            options={'permissions': [('execute_domain', 'Can poll in task domains'), ('execute_agent', 'Can change runs through the tools of agents'), ('execute_debug', 'Can debug runs'), ('add_event_handler', 'Can add event handlers'), ('view_event_handler', 'Can view event handlers'), ('change_event_handler', 'Can change event handlers'), ('delete_event_handler', 'Can delete event handlers'), ('execute_event_handler', 'Can execute event handlers'), ('add_schema', 'Can add schemas'), ('view_schema', 'Can view schemas'), ('change_schema', 'Can change schemas'), ('delete_schema', 'Can delete schemas'), ('execute_schema', 'Can execute schemas'), ('add_webhook', 'Can add webhooks'), ('view_webhook', 'Can view webhooks'), ('change_webhook', 'Can change webhooks'), ('delete_webhook', 'Can delete webhooks'), ('execute_webhook', 'Can execute webhooks')]},
        ),
    ]
