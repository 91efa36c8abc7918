"""A real OpenID Connect provider (django-oauth-toolkit) in its own process: `openid_provider.py PORT FOLDER CALLBACK…`.

`users.json` in the folder lists its users with their claims, and may change while it runs. The password of a user is
the user's name. There is a client for each callback: `conductor`, `conductor-2`, … Each has the secret `client-secret`.
"""

import json
import sys
from pathlib import Path
from wsgiref.simple_server import make_server

import django
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import settings

CLIENT_ID, CLIENT_SECRET = "conductor", "client-secret"


def private_key() -> str:
    """Return a new key that signs identity tokens."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    formats = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(serialization.Encoding.PEM, *formats).decode()


def configure(port: int, folder: Path) -> None:
    settings.configure(
        SECRET_KEY="a provider for tests",
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF="openid_provider",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(folder / "provider.sqlite3")}},
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "oauth2_provider",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        LOGIN_URL="/login/",
        USERS_FILE=folder / "users.json",
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_ISS_ENDPOINT": f"http://127.0.0.1:{port}/o",
            "OIDC_RSA_PRIVATE_KEY": private_key(),
            "PKCE_REQUIRED": True,
            "SCOPES": {"openid": "identity", "profile": "name", "email": "address"},
            "OAUTH2_VALIDATOR_CLASS": "openid_provider.ClaimsValidator",
        },
    )
    django.setup()


configure(int(sys.argv[1]), Path(sys.argv[2]))

from django.contrib.auth import login  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect  # noqa: E402
from django.urls import include, path  # noqa: E402
from oauth2_provider.models import Application  # noqa: E402
from oauth2_provider.oauth2_validators import OAuth2Validator  # noqa: E402


def users() -> dict[str, dict]:
    return json.loads(settings.USERS_FILE.read_text())


class ClaimsValidator(OAuth2Validator):
    """Adds the claims of `users.json` to identity tokens."""

    oidc_claim_scope = None

    def get_additional_claims(self, request) -> dict:
        return users()[request.user.get_username()]


def sign_in(request: HttpRequest) -> HttpResponse:
    name = request.GET.get("user", "")
    if name not in users():
        return HttpResponse("Unknown user", status=403)
    user, _ = User.objects.get_or_create(username=name)
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return HttpResponseRedirect(request.GET["next"])


urlpatterns = [path("o/", include("oauth2_provider.urls")), path("login/", sign_in)]


def serve(port: int, callbacks: list[str]) -> None:
    call_command("migrate", verbosity=0)
    for number, callback in enumerate(callbacks, 1):
        Application.objects.create(
            client_id=CLIENT_ID if number == 1 else f"{CLIENT_ID}-{number}",
            client_secret=CLIENT_SECRET,
            client_type="confidential",
            authorization_grant_type="authorization-code",
            redirect_uris=callback,
            skip_authorization=True,
            algorithm="RS256",
            name="Conductor",
        )
    with make_server("127.0.0.1", port, get_wsgi_application()) as server:
        server.serve_forever()


if __name__ == "__main__":
    # The settings name this module by its import name.
    sys.modules["openid_provider"] = sys.modules["__main__"]
    serve(int(sys.argv[1]), sys.argv[3:])
