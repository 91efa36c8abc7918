"""The way in for web servers that speak ASGI; the API is synchronous and faster under WSGI.

No connection is shown there: a poll cannot tell that its client has hung up.
"""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conductor_app.settings.embedded")
application = get_asgi_application()
