"""Celery jobs, and the schedule on which beat calls them."""
