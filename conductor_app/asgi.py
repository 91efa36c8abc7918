"""The ASGI application. The API is synchronous and faster under WSGI.

ASGI does not pass the connection, so a poll cannot detect that its client has disconnected.
"""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conductor_app.settings.embedded")
application = get_asgi_application()
