"""Where the templates of the pages are, and how Django renders them: in the server, and in another Django project."""

from pathlib import Path
from typing import Any

PACKAGE_DIR = Path(__file__).resolve().parents[1]
# The wheel has the templates inside the package, a checkout has them beside it.
IS_INSTALLED = (PACKAGE_DIR / "resources").is_dir()
RESOURCES_DIR = PACKAGE_DIR / "resources" if IS_INSTALLED else PACKAGE_DIR.parent
TEMPLATES_DIR = RESOURCES_DIR / "templates"
TEMPLATE_OPTIONS: dict[str, Any] = {
    "context_processors": [
        "django.template.context_processors.request",
        "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ],
    "builtins": [
        "django.templatetags.i18n",
        "django.templatetags.static",
        "django.contrib.admin.templatetags.admin_urls",
        "conductor_app.site.tags",
    ],
}
