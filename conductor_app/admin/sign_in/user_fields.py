"""The part of a user's page about sign-in: the second factor, linked identities, and locks."""

from typing import Any

from django.contrib import messages
from django.contrib.admin import display
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.session_limits import end_other_sessions
from ...engine.access.second_factors import has_second_factor, remove_second_factor
from ...engine.access.sign_ins import record_sign_in
from .throttle import is_account_locked, reset_failures


class SignInFieldsMixin:
    """Adds the state of a user's sign-in to the user page, with buttons that change it."""

    @display(description=gettext_lazy("sign-in"))
    def sign_in(self, user: User) -> SafeString:
        context = {
            "user_name": user.get_username(),
            "has_second_factor": has_second_factor(user),
            "identities": user.external_identities.all(),
            "is_locked": is_account_locked(user.get_username()),
        }
        return SafeString(render_to_string("ops/sign_in/user_fields.html", context))

    def response_change(self, request: HttpRequest, user: User) -> HttpResponse:
        """Execute the button that was used, after the form was saved."""
        name, actor = user.get_username(), request.user.get_username()
        if "_remove_second_factor" in request.POST:
            remove_second_factor(user, actor)
            end_other_sessions(user, request.session.session_key)
            messages.success(request, _("%(name)s signs in without a second step now.") % {"name": name})
        elif "_unlock" in request.POST:
            reset_failures(name)
            record_sign_in(name, "unlock sign-in", "", by=actor)
            messages.success(request, _("%(name)s can sign in again.") % {"name": name})
        elif "_end_sessions" in request.POST:
            count = end_other_sessions(user, request.session.session_key)
            record_sign_in(name, "end sessions", "", by=actor)
            messages.success(request, _("Ended %(count)s sessions of %(name)s.") % {"count": count, "name": name})
        else:
            response: Any = super().response_change(request, user)  # type: ignore[misc]
            return response
        return HttpResponseRedirect(request.path)
