"""Who rings the bell: what is called how often, and the Celery jobs that do it."""
