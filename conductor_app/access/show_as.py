"""The pages as another person sees them: read-only, for administrators, until they end it or sign out.

The session has the id of the other person. Only pages are affected: API requests of the browser act as its own user.
"""

from typing import Any, cast

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.translation import gettext as _

from ..core.errors import Forbidden
from .audit import record_access_change
from .permissions import permission_set_of

SHOWN_AS = "pages_shown_as"
PAGES = "/admin/"
STOP_PATH = "/admin/people/stop-showing/"
ALLOWED_COMMANDS = (STOP_PATH, "/admin/logout/")
OWN_ACCOUNT = ("/admin/second-factor/", "/admin/password_change/")
"""Pages that prepare changes of the user's own account when they are read."""
USER = "user"


def may_show_as(viewer: User, person: User) -> bool:
    """Return True if the viewer is an administrator, and the other person may sign in and has no more permissions."""
    is_person = person.is_active and person.is_staff and not hasattr(person, "application")
    has_no_more = viewer.is_superuser or not person.is_superuser
    return viewer.pk != person.pk and is_person and has_no_more and permission_set_of(viewer.pk).is_admin


def start_showing(request: HttpRequest, person: User) -> None:
    """Show the pages of this session as the other person sees them.

    Raises:
        Forbidden: when the user is no administrator, or the other person cannot sign in or has more permissions.
    """
    viewer = cast(User, request.user)
    if not may_show_as(viewer, person):
        raise Forbidden(f"{viewer} may not see the pages as {person}.", code="FORBIDDEN")
    record_access_change(USER, person.get_username(), "start showing pages", viewer.get_username())
    request.session[SHOWN_AS] = person.pk


def stop_showing(request: HttpRequest) -> None:
    """Show the user's own pages again."""
    person = get_user_model().objects.filter(pk=request.session.pop(SHOWN_AS, None)).first()
    if person is not None:
        record_access_change(USER, person.get_username(), "stop showing pages", request.user.get_username())


def apply_to(request: HttpRequest) -> None:
    """Make the other person the user of a request for a page. `request.viewer` is then the user of the session."""
    if not (request.path_info.startswith(PAGES) and request.user.is_authenticated):
        return
    person_id = request.session.get(SHOWN_AS)
    if person_id is None or request.path_info in ALLOWED_COMMANDS:
        return
    viewer, person = request.user, get_user_model().objects.filter(pk=person_id).first()
    if person is None or not may_show_as(viewer, person):
        del request.session[SHOWN_AS]
        return
    shown: Any = request
    shown.viewer, shown.user = viewer, person


def require_read_only(request: HttpRequest) -> None:
    """Raise PermissionDenied if a request may change something while it shows the pages as another person."""
    is_reading = request.method in ("GET", "HEAD") and request.path_info not in OWN_ACCOUNT
    if hasattr(request, "viewer") and not is_reading:
        name = request.user.get_username()
        raise PermissionDenied(_("Nothing can be changed while you see the pages as %(name)s.") % {"name": name})
