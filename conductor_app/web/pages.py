"""Base classes of pages, lists and fragments, and wrappers of their views.

A page declares its name in the address, its title, its template and the permission that it requires, and implements
`get_context`. A page with a `live_template` refreshes itself. Its template contains

    <div data-live="{{ live_address }}" data-rev="{{ live_revision }}">{% include page.live_template %}</div>

and `static/ops/live.js` polls that address, which answers 204 while nothing has changed.

Several templates have the names of templates of Django's admin. So another Django project has an engine of its own for
them, which its own pages do not use: neither replaces the templates of the other.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, wraps
from hashlib import blake2s
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast
from urllib.parse import urlencode

from django.apps import apps
from django.contrib import admin, messages
from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.forms import Media
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template import TemplateDoesNotExist, engines
from django.template.backends.django import DjangoTemplates
from django.template.response import SimpleTemplateResponse, TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from ..access.authentication import server_address
from ..access.visibility import may, shown_to
from ..core.errors import NotFound, RequestRefused
from ..db.statements import read_snapshot
from ..settings import conf
from ..settings.resources import TEMPLATE_OPTIONS, TEMPLATES_DIR
from ..utils.formatting import LazyText
from .badges import relative_time

FRAMEWORK_APPS = ("admin", "auth")
"""The apps of Django whose templates pages extend or use."""


@cache
def _own_engine() -> DjangoTemplates:
    folders = (Path(apps.get_app_config(label).path) / "templates" for label in FRAMEWORK_APPS)
    options = {name: list(value) for name, value in TEMPLATE_OPTIONS.items()}
    return DjangoTemplates(
        {"NAME": "conductor", "DIRS": [TEMPLATES_DIR, *folders], "APP_DIRS": False, "OPTIONS": options}
    )


def render_to_string(
    template: str, context: Mapping[str, Any] | None = None, request: HttpRequest | None = None
) -> SafeString:
    """Render a template of the pages."""
    engine = engines["django"] if conf.is_server else _own_engine()
    # Rendered templates are safe.
    return mark_safe(engine.get_template(template).render(dict(context or {}), request))


ResponseT = TypeVar("ResponseT", bound=HttpResponseBase)


def with_own_template(response: ResponseT) -> ResponseT:
    """Let a response that is not rendered yet use the templates of the pages, also if Django's admin has created it."""
    if conf.is_server or not isinstance(response, SimpleTemplateResponse) or response.is_rendered:
        return response
    names = response.template_name
    if isinstance(names, str | list | tuple):
        response.template_name = _select([names] if isinstance(names, str) else names)
    return response


def _select(names: Iterable[str]) -> Any:
    missing = TemplateDoesNotExist("")
    for name in names:
        try:
            return _own_engine().get_template(name)
        except TemplateDoesNotExist as error:
            missing = error
    raise missing


MAX_NUMBER_LENGTH = 14
VOLATILE_HTML = re.compile(r"<time\b[^>]*data-counts[^>]*>[^<]*</time>|name=\"csrfmiddlewaretoken\" value=\"[^\"]*\"")
"""Parts of a fragment that change without new content: relative times, which the browser updates itself, and tokens."""
READ_METHODS = ("GET", "HEAD")
MAX_COUNTED = 10_000
VIEW_PERMISSIONS = {"add_view": "add", "delete_view": "delete"}
"""The action that each of Django's own views requires. All other views require `view`."""


def without_empty_parameters(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Wrap a view so that the address of a form with empty fields redirects to the same address without them.

    Requests of scripts are not redirected. A parameter without an equals sign, such as `?all`, stays.
    """

    @wraps(view)
    def wrapper(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if request.method == "GET" and "X-Requested-With" not in request.headers:
            query = request.META.get("QUERY_STRING", "")
            parts = query.split("&")
            if len(kept := [part for part in parts if not _is_empty(part)]) < len(parts):
                return HttpResponseRedirect(request.path + (f"?{'&'.join(kept)}" if any(kept) else ""))
        return view(request, *args, **kwargs)

    return wrapper


def _is_empty(parameter: str) -> bool:
    return parameter.partition("=")[1:] == ("=", "")


@dataclass(frozen=True)
class PageQuery:
    """Parsed query parameters. `parameters`: the names that links to other views of the page keep."""

    parameters: ClassVar[tuple[str, ...]] = ()
    values: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.values.get(name, "")

    def number(self, name: str) -> int | None:
        """Return a parameter as a whole number, or None."""
        text = self[name]
        return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_NUMBER_LENGTH else None

    def current_choices(self, *without: str) -> dict[str, str]:
        """Return the current parameters, except those named."""
        return {name: self[name] for name in self.parameters if self[name] and name not in without}

    def address(self, **changed: str | int | None) -> str:
        """Return the address of the page with changed parameters. Parameters that are None are removed."""
        chosen = {**self.current_choices(), **changed}
        return "?" + urlencode({name: value for name, value in chosen.items() if value not in (None, "")})


class ViewModel(Protocol):
    """Anything that a page with tabs shows."""

    @property
    def query(self) -> PageQuery:
        """Return the query parameters of the page."""


V = TypeVar("V", bound=ViewModel)


@dataclass(frozen=True, slots=True)
class PageTab(Generic[V]):
    """One tab. `permission`: what the user needs to see it; empty if everyone who sees the page may."""

    name: str
    label: str | LazyText
    template: str
    build_context: Callable[[V], dict[str, Any]]
    permission: str = ""

    def is_allowed(self, request: HttpRequest, row: Model) -> bool:
        """Return True if the user may see the tab of the page of a row."""
        return not self.permission or may(request.user, self.permission, row)


def tabs_context(tabs: Mapping[str, PageTab[V]], view_model: V, row: Model, request: HttpRequest) -> dict[str, Any]:
    """Return the allowed tabs and the context of the selected one. The default is the first tab.

    `row`: what the page is about. The links to the tabs keep the other query parameters.
    """
    allowed = [tab for tab in tabs.values() if tab.is_allowed(request, row)]
    selected = next((tab for tab in allowed if tab.name == view_model.query["tab"]), next(iter(tabs.values())))
    links = [
        {"label": tab.label, "address": view_model.query.address(tab=tab.name, page=None), "is_chosen": tab is selected}
        for tab in allowed
    ]
    return {
        "tabs": links,
        "tab_template": selected.template,
        "tab": selected.name,
        **selected.build_context(view_model),
    }


def fragment_response(request: HttpRequest, template: str, context: Mapping[str, Any]) -> HttpResponse:
    """Return the fragment with its revision, or 204 if the poll already names this revision."""
    html = render_to_string(template, dict(context), request)
    revision = html_revision(html)
    if request.GET.get("rev") == revision:
        return HttpResponse(status=204)
    return HttpResponse(html, headers={"X-Revision": revision, "Cache-Control": "no-store"})


def html_revision(html: str) -> str:
    """Return a hash of the fragment's content, without its volatile parts."""
    return blake2s(
        VOLATILE_HTML.sub(lambda found: _strip_relative_time(found.group()), html).encode(), digest_size=8
    ).hexdigest()


def _strip_relative_time(time: str) -> str:
    """Return the time of a relative time element, without its text."""
    moment = re.search(r'datetime="([^"]*)"', time)
    return moment.group(1) if moment else ""


def in_read_snapshot(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Run the view, and render its template, inside a read snapshot when the request is a GET or HEAD.

    The middleware saves sessions and messages after the snapshot has ended. A streamed body is also sent after it.
    """

    @wraps(view)
    def wrapped(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if request.method not in READ_METHODS:
            return view(request, *args, **kwargs)
        with read_snapshot():
            response = view(request, *args, **kwargs)
            return with_own_template(response).render() if isinstance(response, SimpleTemplateResponse) else response

    return wrapped


class CappedPaginator(Paginator):
    """Paginator that counts up to a limit. `is_capped` is True if there are more rows."""

    @cached_property
    def count(self) -> int:
        return min(self._bounded_count, MAX_COUNTED)

    @property
    def is_capped(self) -> bool:
        return self._bounded_count > MAX_COUNTED

    @cached_property
    def _bounded_count(self) -> int:
        return cast("QuerySet[Any]", self.object_list).order_by()[: MAX_COUNTED + 1].count()


@dataclass(frozen=True, slots=True)
class PaletteHit:
    """One hit: its kind, its name, its address, and a secondary text. `key`: the key that opens it after the key G."""

    kind: str
    name: str
    address: str
    icon: str
    note: str = ""
    is_page: bool = False
    key: str = ""


Source = Callable[[HttpRequest, str], Iterator[PaletteHit]]


class ServerAwareChangeList(ChangeList):
    """A list with what its empty state shows: the server's base URL and the address that adds a row.

    `shows_all`: True unless the user may see only the rows that grants name. `granted_kind`: the type of these names.
    """

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        self.server = server_address(request)
        super().__init__(request, *args, **kwargs)
        self.add_address = "add/" if self.model_admin.has_add_permission(request) else ""
        self.granted_kind = next(iter(getattr(self.model, "access_names", {})), "")
        self.shows_all = request.user.has_perm(f"{self.opts.app_label}.view_{self.opts.model_name}")

    def unfiltered_paginator(self) -> CappedPaginator:
        """Return a paginator over all rows, which counts them when a filter hides every row."""
        return CappedPaginator(self.root_queryset.order_by("pk"), self.list_per_page)


class BoundedChangeList(ServerAwareChangeList):
    """A list that always reads at most one page of rows.

    Django reads all rows when it has counted fewer than a page of them; databases then plan a scan of the table.
    """

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if not self.multi_page:
            self.result_list = self.result_list[: self.list_per_page]


class ListAdmin:
    """Mixin of every list: its title is its name in the menu, and pages load no scripts of Django's admin.

    A list with actions loads one, and a field may have its own.
    """

    admin_site: Any
    opts: Any

    @property
    def media(self) -> Media:
        return Media()

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        title = {"title": self.admin_site.page_name(self.opts)}
        return super().changelist_view(request, {**title, **(extra_context or {})})  # type: ignore[misc]


class ReadOnlyAdmin(ListAdmin, admin.ModelAdmin):
    """Admin that adds, changes and deletes no row itself. Actions are commands to the engine."""

    actions: tuple[str, ...] | None = None
    empty_value_display = ""
    list_per_page = 50
    list_max_show_all = 0
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by: ClassVar[tuple[str, ...]] = ()

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[ChangeList]:
        return BoundedChangeList

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


def moment_column(field: str, label: str | LazyText) -> Callable[[Any, Any], SafeString]:
    """Return a column of a list with the time in a field, relative to now."""

    @admin.display(description=label)
    def column(_model_admin: Any, row: Any) -> SafeString:
        return relative_time(getattr(row, field))

    return column


class GrantedRowsAdmin(ReadOnlyAdmin):
    """A list of the rows that the user may see, all or some. It opens for users who may see any."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return shown_to(request.user, self._view_permission, super().get_queryset(request))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return may(request.user, self._view_permission, obj)

    @property
    def _view_permission(self) -> str:
        return f"{self.opts.app_label}.{get_permission_codename('view', self.opts)}"


def require_permission(request: HttpRequest, permission: str, row: Model | None = None) -> None:
    """Require a permission on a row, or without a row, on all rows. The 403 page names it.

    Raises:
        PermissionDenied: when the user does not have the permission.
    """
    is_permitted = request.user.has_perm(permission) if row is None else may(request.user, permission, row)
    if not is_permitted:
        raise PermissionDenied(permission)


def require_permission_on_any(request: HttpRequest, permission: str) -> None:
    """Require a permission on any row. The 403 page names it.

    Raises:
        PermissionDenied: when the user has it on no row.
    """
    if not may(request.user, permission):
        raise PermissionDenied(permission)


def name_missing_permission(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Wrap a view of a ModelAdmin so that PermissionDenied names the permission, which Django's own views leave out.

    The history of an object that does not exist is refused like that of one that does.

    Raises:
        PermissionDenied: when the view raises it.
    """
    owner = getattr(view, "__self__", None)
    if not isinstance(owner, ModelAdmin):
        return view

    @wraps(view)
    def wrapper(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        try:
            # Django's view first looks for the object, and redirects if there is none.
            if view.__name__ == "history_view" and not owner.has_view_permission(request):
                raise PermissionDenied
            return view(request, *args, **kwargs)
        except PermissionDenied as denied:
            if denied.args:
                raise
            codename = get_permission_codename(VIEW_PERMISSIONS.get(view.__name__, "view"), owner.opts)
            raise PermissionDenied(f"{owner.opts.app_label}.{codename}") from denied

    return wrapper


def show_refusal(request: HttpRequest, refused: RequestRefused, *ways_out: tuple[str, str]) -> None:
    """Show on the next page why the engine rejected a request. `ways_out`: links (label, address) to alternatives."""
    links = format_html_join("", ' <a href="{1}">{0}</a>', ways_out)
    messages.error(request, format_html("{}{}", refused.message, links))


class Page:
    """One page: its name in the address, its title, its template, and the permission that it requires.

    `shows_granted_rows`: the page opens for users who have the permission on some rows only, by grants. It shows
    `visible` rows, and requires the permission on the row that it shows or changes. Other pages require it on all rows.
    """

    name = ""
    shows_granted_rows = False
    title: str | LazyText = ""
    template = ""
    permission = ""
    live_template = ""

    def get_context(self, request: HttpRequest, *args: Any, **url_kwargs: Any) -> dict[str, Any]:
        """Return the context of the template."""
        raise NotImplementedError

    def post(self, request: HttpRequest) -> HttpResponse:
        """Handle a form of the page."""
        return HttpResponseNotAllowed(["GET"])

    def is_open_to(self, request: HttpRequest) -> bool:
        if self.shows_granted_rows:
            return may(request.user, self.permission)
        return request.user.has_perm(self.permission)

    def urls(self, site: AdminSite) -> list[URLPattern]:
        """Return the URL patterns of the page."""

        def view(request: HttpRequest) -> HttpResponse:
            self._require_access(request)
            if request.method == "POST":
                return self.post(request)
            context = {**site.each_context(request), "title": self.title, "page": self, **self.get_context(request)}
            if self.live_template:
                html = render_to_string(self.live_template, context, request)
                context |= {"live_address": reverse(f"admin:{self.name}_live"), "live_revision": html_revision(html)}
            return TemplateResponse(request, self.template, context)

        def live(request: HttpRequest) -> HttpResponse:
            self._require_access(request)
            return fragment_response(request, self.live_template, self.get_context(request))

        address = self.name.replace("_", "-")
        lines = [path(f"{address}/", site.admin_view(view), name=self.name)]
        if self.live_template:
            lines.append(path(f"{address}/live/", site.admin_view(live), name=f"{self.name}_live"))
        return lines

    def _require_access(self, request: HttpRequest) -> None:
        if not self.is_open_to(request):
            raise PermissionDenied(self.permission)

    def sidebar_entry(self) -> dict[str, Any]:
        """Return the page in the form in which Django's sidebar lists models."""
        address = reverse(f"admin:{self.name}")
        return {"name": self.title, "object_name": self.name, "admin_url": address, "add_url": None, "view_only": True}


class ObjectPage(Page):
    """A page about one object. `route` is its address; its parameters are passed to `get_context` and `handle_post`.

    The context includes the title. It may name another template and status: `template`, `status_code`.
    """

    route = ""

    def handle_post(self, request: HttpRequest, *args: Any, **url_kwargs: Any) -> HttpResponse | dict[str, Any]:
        """Handle a form of the page. Return a response, or the context to render the page again."""
        return HttpResponseNotAllowed(["GET"])

    def sidebar_entry(self) -> dict[str, Any]:
        """Return an empty entry: users reach the page from the list of its objects."""
        return {"object_name": self.name, "admin_url": ""}

    def urls(self, site: AdminSite) -> list[URLPattern]:
        def view(request: HttpRequest, **url_kwargs: Any) -> HttpResponseBase:
            self._require_access(request)
            answer = get_or_404(
                self.handle_post if request.method == "POST" else self.get_context, request, **url_kwargs
            )
            if isinstance(answer, HttpResponseBase):
                return answer
            context = {**site.each_context(request), "page": self, **answer}
            if self.live_template:
                html = render_to_string(self.live_template, context, request)
                address = reverse(f"admin:{self.name}_live", kwargs=url_kwargs)
                context |= {"live_address": address, "live_revision": html_revision(html)}
            template, status = answer.get("template", self.template), answer.get("status_code")
            return TemplateResponse(request, template, context, status=status)

        def live(request: HttpRequest, **url_kwargs: Any) -> HttpResponse:
            self._require_access(request)
            return fragment_response(request, self.live_template, get_or_404(self.get_context, request, **url_kwargs))

        lines = [path(self.route, site.admin_view(view), name=self.name)]
        if self.live_template:
            lines.insert(0, path(f"{self.route}live/", site.admin_view(live), name=f"{self.name}_live"))
        return lines


def get_or_404(find: Callable[..., Any], *args: object, **url_kwargs: Any) -> Any:
    """Call `find` and return its result.

    Raises:
        Http404: when `find` raises NotFound.
    """
    try:
        return find(*args, **url_kwargs)
    except NotFound as missing:
        raise Http404(missing.message) from missing
