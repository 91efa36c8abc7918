"""The client of an OpenID Connect provider, by Authlib. The first sign-in loads it, in 0.1 s."""

from functools import lru_cache
from typing import Any

from authlib.integrations.base_client import OAuthError
from authlib.integrations.django_client import OAuth
from django.http import HttpRequest, HttpResponseBase
from joserfc.errors import JoseError
from requests import RequestException

from ...settings import conf

TIMEOUT_SECONDS = 10


class ProviderFailed(Exception):
    """The provider does not respond, or its response is not valid."""


@lru_cache(maxsize=4)
def configured_client(issuer: str, client_id: str, client_secret: str, scopes: str) -> Any:
    """Return a client. It reads the provider's metadata at its first use."""
    oauth = OAuth()
    return oauth.register(
        "openid",
        server_metadata_url=f"{issuer.rstrip('/')}/.well-known/openid-configuration",
        client_id=client_id,
        client_secret=client_secret or None,
        client_kwargs={
            "scope": scopes,
            "code_challenge_method": "S256",
            "default_timeout": TIMEOUT_SECONDS,
            **({} if client_secret else {"token_endpoint_auth_method": "none"}),
        },
    )


def redirect_to_provider(request: HttpRequest, callback_address: str) -> HttpResponseBase:
    """Redirect to the sign-in page of the provider.

    Raises:
        ProviderFailed: when its metadata cannot be read.
    """
    try:
        return _client().authorize_redirect(request, callback_address)
    except (OAuthError, RequestException, ValueError, KeyError) as error:
        raise ProviderFailed(str(error)) from error


def fetch_claims(request: HttpRequest) -> dict[str, Any]:
    """Return the claims about the user, for the code that the provider sent.

    Raises:
        ProviderFailed: when the code or a token is not valid, or the provider does not respond.
    """
    try:
        token = _client().authorize_access_token(request, leeway=60)
        claims = token.get("userinfo") or {}
        if conf.oidc_groups_claim not in claims or conf.oidc_username_claim not in claims:
            claims = {**_client().userinfo(token=token), **claims}
    except (OAuthError, JoseError, RequestException, ValueError, KeyError, RuntimeError) as error:
        raise ProviderFailed(str(error)) from error
    return claims


def _client() -> Any:
    return configured_client(conf.oidc_issuer, conf.oidc_client_id, conf.oidc_client_secret, conf.oidc_scopes)
