"""Every address of the Auth service that clients of the Queue need (taskcluster §6, §7.2)."""

from django.urls import re_path

from .view import not_found
from .views import clients, scope_roles, scopes, server

CLIENT_PATTERN = r"^clients/(?P<clientId>.+)"

# Clients of some languages leave out the slash at an end, others do not.
urlpatterns = [
    re_path(r"^clients/?$", clients.ClientList.as_view()),
    re_path(CLIENT_PATTERN + r"/reset$", clients.ResetAccessToken.as_view()),
    re_path(CLIENT_PATTERN + r"/enable$", clients.EnableClient.as_view()),
    re_path(CLIENT_PATTERN + r"/disable$", clients.DisableClient.as_view()),
    re_path(CLIENT_PATTERN + r"$", clients.ClientOne.as_view()),
    re_path(r"^roles/?$", scope_roles.ScopeRoleList.as_view()),
    re_path(r"^roles2/?$", scope_roles.ScopeRolePages.as_view()),
    re_path(r"^roleids/?$", scope_roles.ScopeRoleIds.as_view()),
    re_path(r"^roles/(?P<roleId>.+)$", scope_roles.ScopeRoleOne.as_view()),
    re_path(r"^scopes/expand$", scopes.ExpandScopes.as_view()),
    re_path(r"^scopes/current$", scopes.CurrentScopes.as_view()),
    re_path(r"^authenticate-hawk$", scopes.AuthenticateHawk.as_view()),
    re_path(r"^ping$", server.Ping.as_view()),
    re_path(r"^__version__$", server.TaskclusterVersion.as_view()),
    re_path(r"^__heartbeat__$", server.Heartbeat.as_view()),
    re_path(r"^__lbheartbeat__$", server.LoadBalancerHeartbeat.as_view()),
    re_path(r"", not_found),
]
