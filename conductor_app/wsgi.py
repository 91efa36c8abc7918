"""The way in for web servers that speak WSGI, such as gunicorn."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conductor_app.settings.embedded")
application = get_wsgi_application()
