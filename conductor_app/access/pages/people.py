"""People and programs: who has which role on what, invitations, and the pages as a person sees them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.apps import apps
from django.conf import settings
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.paginator import Page as Rows
from django.core.paginator import Paginator
from django.db.models import Max, Q
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.errors import Invalid, NotFound, RequestRefused
from ...settings import conf
from ...utils.formatting import LazyText
from ...web.pages import ObjectPage, Page, require_permission, show_refusal
from ..authentication import server_address
from ..commands import people
from ..commands.people import (
    AUTHOR,
    CUSTOM,
    OPERATOR,
    PERSON_ROLES,
    PROGRAM_ROLES,
    STOP_PATH,
    VIEWER,
    WORKER,
    Access,
    may_show_as,
    start_showing,
    stop_showing,
)
from ..grants import MODEL_BY_TARGET_TYPE, may_give
from ..models import Application, ExternalIdentity, SecondFactor
from ..permissions import ADMIN, TASK_DEF, WORKFLOW_DEF, read_permission_set
from ..sign_in.commands import (
    VALID_DAYS,
    create_invitation,
    invitation_address,
    invite_person,
    mail_invitation,
    may_be_linked,
    permit_link,
)
from ..tokens import USED_AT, end_other_sessions
from ..visibility import visible_names

VIEW_PERMISSION, INVITE_PERMISSION, CHANGE_PERMISSION = "auth.view_user", "auth.add_user", "auth.change_user"
PROGRAM_PERMISSIONS = ("conductor.add_application", "conductor.add_accesskey")
GRANT_PERMISSION = "conductor.add_grant"
LISTED, MATCHES_SHOWN, MAX_SESSIONS = 50, 12, 2_000
ALL, SOME = "all", "some"
PASSWORD, SINGLE_SIGN_ON = "password", "single sign-on"
ROLE_LABELS: dict[str, str | LazyText] = {
    VIEWER: gettext_lazy("Viewer"),
    OPERATOR: gettext_lazy("Operator"),
    AUTHOR: gettext_lazy("Author"),
    ADMIN: gettext_lazy("Administrator"),
    WORKER: gettext_lazy("Worker"),
    CUSTOM: gettext_lazy("Custom"),
    "": gettext_lazy("No access"),
}
ROLE_TEXTS = {
    VIEWER: gettext_lazy("reads workflows and runs"),
    OPERATOR: gettext_lazy("reads, and starts, pauses, retries and ends runs"),
    AUTHOR: gettext_lazy("reads, and writes workflows, task definitions, schedules and event handlers"),
    ADMIN: gettext_lazy("does everything, people and settings included"),
    WORKER: gettext_lazy("polls for tasks and reports on them"),
}


class AccessForm(forms.Form):
    """A role and its scope. `roles`: those to choose from."""

    role = forms.ChoiceField(label=gettext_lazy("Role"))
    scope = forms.ChoiceField(
        choices=[(ALL, gettext_lazy("All")), (SOME, gettext_lazy("Some, by name or tag"))], label=gettext_lazy("Scope")
    )
    names = forms.CharField(
        required=False,
        label=gettext_lazy("Names and prefixes"),
        help_text=gettext_lazy("One per line: a name (order), or the beginning of names with a * (shop_*)."),
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )
    tags = forms.CharField(
        required=False,
        label=gettext_lazy("Tags"),
        help_text=gettext_lazy("As key:value, with commas between them. A tag applies to everything that has it."),
    )
    with_tasks = forms.BooleanField(
        required=False,
        label=gettext_lazy("And their tasks"),
        help_text=gettext_lazy("reads the task definitions, queues and workers of the tasks that they have now"),
    )
    is_of_program = False

    def __init__(self, data: Any = None, *, access: Access | None = None, **kwargs: Any) -> None:
        roles = PROGRAM_ROLES if self.is_of_program else PERSON_ROLES
        kwargs["initial"] = {
            "role": access.role if access else roles[0],
            "scope": ALL if access and access.is_on_all else SOME,
            "names": "\n".join(access.names) if access else "",
            "tags": ", ".join(access.tags) if access else "",
            "with_tasks": bool(access.tasks) if access else True,
        }
        super().__init__(data, **kwargs)
        cast(Any, self.fields["role"]).choices = [(role, ROLE_LABELS[role]) for role in roles]

    @property
    def role_choices(self) -> list[tuple[str, Any, Any, bool]]:
        """Return the roles as (value, label, what it does, whether it is selected)."""
        chosen = self["role"].value()
        return [
            (role, label, ROLE_TEXTS[role], role == chosen) for role, label in cast(Any, self.fields["role"]).choices
        ]

    @property
    def scope_choices(self) -> list[tuple[str, Any, bool]]:
        chosen = self["scope"].value()
        return [(value, label, value == chosen) for value, label in cast(Any, self.fields["scope"]).choices]

    def clean(self) -> dict[str, Any]:
        """Build the access."""
        cleaned = super().clean() or {}
        if "role" not in cleaned or "scope" not in cleaned:
            return cleaned
        names = tuple(dict.fromkeys(filter(None, map(str.strip, cleaned["names"].replace(",", "\n").splitlines()))))
        tags = tuple(dict.fromkeys(filter(None, map(str.strip, cleaned["tags"].replace("\n", ",").split(",")))))
        is_some = cleaned["scope"] == SOME
        if is_some and not (names or tags):
            raise forms.ValidationError(_("Enter a name, a prefix or a tag, or choose all."))
        access = Access(cleaned["role"], names, tags) if is_some else Access(cleaned["role"])
        try:
            people.require_valid_access(access, PROGRAM_ROLES if self.is_of_program else PERSON_ROLES)
            if is_some and cleaned["with_tasks"] and not self.is_of_program:
                access = people.with_tasks(access)
        except Invalid as refused:
            raise forms.ValidationError(refused.message) from None
        cleaned["access"] = access
        return cleaned


class InvitationForm(AccessForm):
    """A new person."""

    name = forms.CharField(
        max_length=150,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("The name for the sign-in. With single sign-on, exactly the name at the provider."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "autofocus": True}),
    )
    email = forms.EmailField(required=False, max_length=254, label=gettext_lazy("Email"))
    sign_in = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Signs in with"),
        choices=[
            (SINGLE_SIGN_ON, gettext_lazy("single sign-on")),
            (PASSWORD, gettext_lazy("a password")),
        ],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not (conf.oidc_issuer and conf.local_sign_in):
            del self.fields["sign_in"]

    @property
    def uses_single_sign_on(self) -> bool:
        return bool(conf.oidc_issuer) and self.cleaned_data.get("sign_in") != PASSWORD


class ProgramAccessForm(AccessForm):
    """The role and scope of an application."""

    is_of_program = True


class ProgramForm(ProgramAccessForm):
    """A new application."""

    name = forms.CharField(
        max_length=255,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("What uses the key: a service, a team's workers."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "autofocus": True}),
    )


@dataclass(frozen=True, slots=True)
class PersonRow:
    """One line of the list: a person, or an application's user."""

    user: User
    name: str
    access: Access
    active_at: int | None
    sign_in: str = ""
    may_be_shown: bool = False

    @property
    def role(self) -> Any:
        return ROLE_LABELS[self.access.role]


class PeoplePage(Page):
    """The people and programs of the server with their roles and scopes."""

    name, title, template = "people", gettext_lazy("People"), "ops/access/people.html"
    permission = VIEW_PERMISSION

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        text = request.GET.get("q", "").strip()[:150]
        shown = Paginator(_find_people(text), LISTED).get_page(request.GET.get("page"))
        programs = Paginator(_find_programs(text), LISTED).get_page(request.GET.get("programs"))
        return {
            "text": text,
            "people": shown,
            "person_rows": _person_rows(request, shown),
            "programs": programs,
            "program_rows": _program_rows(programs),
            "may_invite": request.user.has_perm(INVITE_PERMISSION),
            "may_add_programs": request.user.has_perms(PROGRAM_PERMISSIONS),
        }


def _find_people(text: str) -> Any:
    found = get_user_model().objects.filter(application=None).select_related("application").order_by("username")
    columns = ("username", "email", "first_name", "last_name")
    return found.filter(Q(*((f"{each}__icontains", text) for each in columns), _connector=Q.OR)) if text else found


def _find_programs(text: str) -> Any:
    found = Application.objects.select_related("user").annotate(used_at=Max("keys__used_at")).order_by("name", "id")
    return found.filter(name__icontains=text) if text else found


def _person_rows(request: HttpRequest, users: "Rows[User]") -> list[PersonRow]:
    ids = [user.pk for user in users]
    accesses, active, viewer = people.accesses_of(ids), _last_activity(ids), cast(User, request.user)
    with_factor = set(SecondFactor.objects.filter(user__in=ids).values_list("user_id", flat=True))
    with_identity = set(ExternalIdentity.objects.filter(user__in=ids).values_list("user_id", flat=True))
    return [
        PersonRow(
            user,
            user.get_full_name(),
            accesses[user.pk],
            active.get(user.pk),
            _sign_in_text(user, user.pk in with_factor, user.pk in with_identity),
            not hasattr(request, "viewer") and may_show_as(viewer, user),
        )
        for user in users
    ]


def _sign_in_text(user: User, has_factor: bool, has_identity: bool) -> str:
    if not user.is_active:
        return _("deactivated")
    if has_factor:
        return _("two-step sign-in")
    if has_identity:
        return _("single sign-on")
    return _("password only") if user.has_usable_password() else _("has not signed in yet")


def _program_rows(programs: Iterable[Application]) -> list[PersonRow]:
    accesses = people.accesses_of([each.user_id for each in programs])
    return [
        PersonRow(each.user, each.name, accesses[each.user_id], cast(Any, each).used_at or None) for each in programs
    ]


def _last_activity(user_ids: Sequence[int]) -> dict[int, int]:
    """Return when each user last signed in or used a session, in epoch milliseconds."""
    signed_in = get_user_model().objects.filter(pk__in=user_ids, last_login__isnull=False)
    found = {id: round(at.timestamp() * 1000) for id, at in signed_in.values_list("pk", "last_login") if at}
    sessions = Session.objects.filter(expire_date__gt=timezone.now()).order_by("-expire_date")
    for session in sessions[:MAX_SESSIONS].iterator():
        values = session.get_decoded()
        id = int(values.get("_auth_user_id") or 0)
        if id in user_ids:
            found[id] = max(found.get(id, 0), values.get(USED_AT) or 0)
    return found


class InvitePage(ObjectPage):
    """The form to invite a person, and the link for the person."""

    name, template, route = "invite", "ops/access/invite.html", "people/invite/"
    permission = INVITE_PERMISSION

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        return self._form_context(InvitationForm())

    def handle_post(self, request: HttpRequest) -> HttpResponse | dict[str, Any]:
        form = InvitationForm(request.POST)
        if form.is_valid():
            _require_may_grant(request, form.cleaned_data["access"])
            try:
                return self._invite(request, form)
            except RequestRefused as refused:
                form.add_error(None, refused.message)
        return self._form_context(form)

    def _form_context(self, form: InvitationForm) -> dict[str, Any]:
        return {"title": _("Invite a person"), "form": form, "has_no_mail_server": settings.EMAIL_HOST == "localhost"}

    def _invite(self, request: HttpRequest, form: InvitationForm) -> dict[str, Any]:
        by, values = request.user.get_username(), form.cleaned_data
        user, link = invite_person(
            values["name"].strip(), values["email"], values["access"], by, uses_link=not form.uses_single_sign_on
        )
        context = _invitation_context(request, user, link) if link else {"title": _("Invited"), "person": user}
        return context | _scope_context(values["access"])


def _invitation_context(request: HttpRequest, user: User, link: str) -> dict[str, Any]:
    by, address = request.user.get_username(), invitation_address(request, link)
    return {
        "title": _("Invited"),
        "person": user,
        "address": address,
        "days": VALID_DAYS,
        "is_mailed": bool(user.email) and mail_invitation(user, address, by),
        # The default of `EMAIL_HOST` is a mail server on this machine, which few installations have.
        "has_no_mail_server": bool(user.email) and settings.EMAIL_HOST == "localhost",
    }


def _require_may_grant(request: HttpRequest, access: Access) -> None:
    if not access.is_on_all:
        require_permission(request, GRANT_PERMISSION)


def _scope_context(access: Access) -> dict[str, Any]:
    """Return the context with what a scope has now, as far as the user may see it."""
    if access.is_on_all or not access.role or access.is_custom:
        return {"access": access, "role": ROLE_LABELS[access.role]}
    target_type = TASK_DEF if access.role == WORKER else WORKFLOW_DEF
    model = apps.get_model("conductor", MODEL_BY_TARGET_TYPE[target_type])
    known = model._default_manager.order_by("name").values_list("name", flat=True).distinct()
    matches = people.matching_names(access, target_type, visible_names(target_type, known))
    return {
        "access": access,
        "role": ROLE_LABELS[access.role],
        "matches": matches[:MATCHES_SHOWN],
        "further_matches": max(0, len(matches) - MATCHES_SHOWN),
        "is_of_tasks": target_type == TASK_DEF,
        "has_scope": True,
    }


class NewProgramPage(ObjectPage):
    """The form to add an application or workers, and their key with code to use it."""

    name, template, route = "new_program", "ops/access/new_program.html", "people/new-program/"
    permission = PROGRAM_PERMISSIONS[0]

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        return {"title": _("Add an application or workers"), "form": ProgramForm()}

    def handle_post(self, request: HttpRequest) -> HttpResponse | dict[str, Any]:
        require_permission(request, PROGRAM_PERMISSIONS[1])
        form = ProgramForm(request.POST)
        if form.is_valid():
            access: Access = form.cleaned_data["access"]
            _require_may_grant(request, access)
            try:
                made, key_id, secret = people.add_program(
                    form.cleaned_data["name"].strip(), access, request.user.get_username()
                )
            except RequestRefused as refused:
                form.add_error(None, refused.message)
            else:
                context = {"title": _("Added"), "program": made, "key_id": key_id, "secret": secret}
                return context | _scope_context(access) | _sample(request, access, key_id, secret)
        return {"title": _("Add an application or workers"), "form": form}


def _sample(request: HttpRequest, access: Access, key_id: str, secret: str) -> dict[str, Any]:
    """Return the context with the environment of the SDKs, and code for Python that does what the role may do."""
    name = next(iter(access.names), "*").replace("*", "example")
    by_role = {WORKER: WORKER_SAMPLE, VIEWER: SEARCH_SAMPLE, AUTHOR: SEARCH_SAMPLE}
    code = by_role.get(access.role, START_SAMPLE).replace("NAME", name)
    values = {"SERVER_URL": f"{server_address(request)}/api", "AUTH_KEY": key_id, "AUTH_SECRET": secret}
    exports = "\n".join(f"export CONDUCTOR_{name}={value}" for name, value in values.items())
    return {"exports": exports, "sample": code}


WORKER_SAMPLE = """\
from conductor.client.automator.task_handler import TaskHandler
from conductor.client.configuration.configuration import Configuration
from conductor.client.worker.worker_task import worker_task


@worker_task(task_definition_name="NAME")
def work() -> dict:
    return {"done": True}


if __name__ == "__main__":
    with TaskHandler(configuration=Configuration(), scan_for_annotated_workers=True) as handler:
        handler.start_processes()
        handler.join_processes()
"""
START_SAMPLE = """\
from conductor.client.configuration.configuration import Configuration
from conductor.client.http.models import StartWorkflowRequest
from conductor.client.orkes_clients import OrkesClients

clients = OrkesClients(Configuration())
request = StartWorkflowRequest(name="NAME", input={})
print(clients.get_workflow_client().start_workflow(request))
"""
SEARCH_SAMPLE = """\
from conductor.client.configuration.configuration import Configuration
from conductor.client.orkes_clients import OrkesClients

clients = OrkesClients(Configuration())
for run in clients.get_workflow_client().search(size=20).results:
    print(run.workflow_id, run.workflow_type, run.status)
"""


class PersonPage(ObjectPage):
    """One person or application: the role and the scope, and what an administrator does about the sign-in."""

    name, template, route = "person", "ops/access/person.html", "people/<int:user_id>/"
    permission = VIEW_PERMISSION

    def get_context(self, request: HttpRequest, user_id: int) -> dict[str, Any]:
        return self._context(request, _find_user(user_id))

    def _context(self, request: HttpRequest, user: User, form: AccessForm | None = None) -> dict[str, Any]:
        access, program = people.access_of(user), getattr(user, "application", None)
        may_change = request.user.has_perm(CHANGE_PERMISSION) and may_give(read_permission_set(user.pk))
        is_editable = may_change and not user.is_superuser and not access.is_custom
        form_class = ProgramAccessForm if program else AccessForm
        [row] = _program_rows(_find_programs("").filter(pk=program.pk)) if program else _person_rows(request, [user])  # type: ignore[arg-type]
        return {
            "title": program.name if program else user.get_username(),
            "person": user,
            "program": program,
            "row": row,
            "form": (form or form_class(access=access if access.role else None)) if is_editable else None,
            "may_change": may_change,
            "new_tasks": people.new_tasks(access) if is_editable and not program else (),
            "has_no_way_to_sign_in": not program and may_be_linked(user),
            "has_provider": bool(conf.oidc_issuer),
            "has_passwords": conf.local_sign_in,
            "advanced": reverse("admin:auth_user_change", args=[user.pk]),
            **_scope_context(access),
        }

    def handle_post(self, request: HttpRequest, user_id: int) -> HttpResponse | dict[str, Any]:
        user, by = _find_user(user_id), request.user.get_username()
        command = request.POST.get("do", "")
        if command == "show":
            start_showing(request, user)
            return HttpResponseRedirect(reverse("admin:index"))
        require_permission(request, CHANGE_PERMISSION)
        try:
            if command == "access":
                return self._set_access(request, user)
            if command == "invite":
                context = _invitation_context(request, user, create_invitation(user, by))
                return self._context(request, user) | context | {"title": user.get_username()}
            if command == "tasks":
                require_permission(request, GRANT_PERMISSION)
                people.grant_new_tasks(user.pk, by)
                messages.success(request, _("Saved. It takes effect within one second."))
            elif command == "permit":
                permit_link(user, by)
                messages.success(request, _("The next single sign-on with this name uses this account."))
            elif command in ("deactivate", "activate"):
                is_active = command == "activate"
                people.set_active(user.pk, is_active, by)
                end_other_sessions(user, request.session.session_key)
                text = _("%(name)s can sign in again.") if is_active else _("%(name)s can no longer sign in.")
                messages.success(request, text % {"name": user.get_username()})
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(request.path)

    def _set_access(self, request: HttpRequest, user: User) -> HttpResponse | dict[str, Any]:
        form = (ProgramAccessForm if hasattr(user, "application") else AccessForm)(request.POST)
        if not form.is_valid():
            return self._context(request, user, form)
        _require_may_grant(request, form.cleaned_data["access"])
        people.set_access(user.pk, form.cleaned_data["access"], request.user.get_username())
        messages.success(request, _("Saved. It takes effect within one second."))
        return HttpResponseRedirect(request.path)


def _find_user(user_id: int) -> User:
    found: User | None = get_user_model().objects.select_related("application").filter(pk=user_id).first()
    if found is None:
        raise NotFound(_("There is no such person."))
    return found


class StopShowingPage(Page):
    """The way back from the pages as another person sees them."""

    name = "stop_showing"

    def is_open_to(self, request: HttpRequest) -> bool:
        return request.user.is_active

    def urls(self, site: AdminSite) -> list[URLPattern]:
        return [path(STOP_PATH.removeprefix("/admin/"), site.admin_view(self.stop), name=self.name)]

    def stop(self, request: HttpRequest) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        stop_showing(request)
        return HttpResponseRedirect(reverse("admin:people"))

    def sidebar_entry(self) -> dict[str, Any]:
        return {}
