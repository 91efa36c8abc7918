"""Every address of the Auth service that clients of the Queue need (taskcluster §6, §7.2)."""

from django.urls import re_path

from .view import not_found
from .views import clients, scope_roles, scopes, server

CLIENT = r"^clients/(?P<clientId>.+)"

# Clients of some languages leave out the slash at an end, others do not.
urlpatterns = [
    re_path(r"^clients/?$", clients.Clients.as_view()),
    re_path(CLIENT + r"/reset$", clients.Reset.as_view()),
    re_path(CLIENT + r"/enable$", clients.Enable.as_view()),
    re_path(CLIENT + r"/disable$", clients.Disable.as_view()),
    re_path(CLIENT + r"$", clients.OneClient.as_view()),
    re_path(r"^roles/?$", scope_roles.ScopeRoleList.as_view()),
    re_path(r"^roles2/?$", scope_roles.RolesInPages.as_view()),
    re_path(r"^roleids/?$", scope_roles.RoleIds.as_view()),
    re_path(r"^roles/(?P<roleId>.+)$", scope_roles.OneRole.as_view()),
    re_path(r"^scopes/expand$", scopes.Expand.as_view()),
    re_path(r"^scopes/current$", scopes.Current.as_view()),
    re_path(r"^authenticate-hawk$", scopes.AuthenticateHawk.as_view()),
    re_path(r"^ping$", server.Ping.as_view()),
    re_path(r"^__version__$", server.TaskclusterVersion.as_view()),
    re_path(r"^__heartbeat__$", server.Heartbeat.as_view()),
    re_path(r"^__lbheartbeat__$", server.LoadBalancerHeartbeat.as_view()),
    re_path(r"", not_found),
]
