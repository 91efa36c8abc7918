"""URL patterns of the Auth service that clients of the Queue need (taskcluster §6, §7.2)."""

from django.urls import re_path

from ..api import auth as client_views
from ..api import auth as scope_role_views
from ..api import auth as scope_views
from ..api import queues as server_views
from ..api.view import not_found

CLIENT_PATTERN = r"^clients/(?P<clientId>.+)"

# Clients of some languages leave out the slash at an end, others do not.
urlpatterns = [
    re_path(r"^clients/?$", client_views.ClientList.as_view()),
    re_path(CLIENT_PATTERN + r"/reset$", client_views.ResetAccessToken.as_view()),
    re_path(CLIENT_PATTERN + r"/enable$", client_views.EnableClient.as_view()),
    re_path(CLIENT_PATTERN + r"/disable$", client_views.DisableClient.as_view()),
    re_path(CLIENT_PATTERN + r"$", client_views.ClientOne.as_view()),
    re_path(r"^roles/?$", scope_role_views.ScopeRoleList.as_view()),
    re_path(r"^roles2/?$", scope_role_views.ScopeRolePages.as_view()),
    re_path(r"^roleids/?$", scope_role_views.ScopeRoleIds.as_view()),
    re_path(r"^roles/(?P<roleId>.+)$", scope_role_views.ScopeRoleOne.as_view()),
    re_path(r"^scopes/expand$", scope_views.ExpandScopes.as_view()),
    re_path(r"^scopes/current$", scope_views.CurrentScopes.as_view()),
    re_path(r"^authenticate-hawk$", scope_views.AuthenticateHawk.as_view()),
    re_path(r"^ping$", server_views.Ping.as_view()),
    re_path(r"^__version__$", server_views.TaskclusterVersion.as_view()),
    re_path(r"^__heartbeat__$", server_views.Heartbeat.as_view()),
    re_path(r"^__lbheartbeat__$", server_views.LoadBalancerHeartbeat.as_view()),
    re_path(r"", not_found),
]
