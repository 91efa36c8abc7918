"""The pages of the server's own users: people, groups, sign-in. Another Django project has its own users instead."""

from collections.abc import Callable
from typing import Any, cast

from django.contrib.admin import AdminSite
from django.contrib.auth.models import Group, User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from ..access.pages.people import InvitePage, NewProgramPage, PeoplePage, PersonPage, StopShowingPage
from ..access.pages.users import AuditedGroupAdmin, AuditedUserAdmin
from ..access.sign_in.openid import callback as openid_callback
from ..access.sign_in.openid import start as openid_start
from ..access.sign_in.pages import InvitationView, SecondFactorPage, SignInView, second_factor, second_factor_required
from ..web.forms import strip_nul_from_request
from ..web.pages import Page

USER_PAGES: tuple[Page, ...] = (
    PeoplePage(),
    InvitePage(),
    NewProgramPage(),
    PersonPage(),
    StopShowingPage(),
    SecondFactorPage(),
)
USER_ADMINS: dict[Any, Any] = {User: AuditedUserAdmin, Group: AuditedGroupAdmin}


def sign_in_urls() -> list[URLPattern]:
    """Return the pages that a user opens before being signed in."""
    return [
        path("login/code/", never_cache(second_factor), name="sign_in_code"),
        path("login/setup/", never_cache(second_factor_required), name="sign_in_setup"),
        path("login/invitation/<uidb64>/<token>/", InvitationView.as_view(), name="invitation"),
        path("login/openid/", never_cache(openid_start), name="openid_start"),
        path("login/openid/callback/", never_cache(openid_callback), name="openid_callback"),
    ]


class OwnUsersMixin(AdminSite):
    """Adds the sign-in of the server to a site."""

    def get_urls(self) -> list[URLPattern | URLResolver]:
        return [*sign_in_urls(), *super().get_urls()]

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the sign-in page, or the overview to users who are signed in."""
        if request.method == "GET" and self.has_permission(request):
            return HttpResponseRedirect(reverse("admin:index"))
        request.current_app = self.name
        sign_in = cast(Callable[..., HttpResponse], SignInView.as_view(extra_context=extra_context))
        return strip_nul_from_request(sign_in)(request)
