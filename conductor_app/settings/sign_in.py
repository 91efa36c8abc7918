"""Settings of sign-in: limits, sessions and single sign-on."""

from . import environment

CONDUCTOR_SIGN_IN_ATTEMPTS = environment.number("SIGN_IN_ATTEMPTS", 5, least=1)
CONDUCTOR_SIGN_IN_LOCK_MINUTES = environment.number("SIGN_IN_LOCK_MINUTES", 15, least=1)
CONDUCTOR_SESSION_IDLE_MINUTES = environment.number("SESSION_IDLE_MINUTES", 120, least=1)
CONDUCTOR_SESSION_HOURS = environment.number("SESSION_HOURS", 12, least=1)
CONDUCTOR_SECOND_FACTOR_REQUIRED = environment.boolean("SECOND_FACTOR_REQUIRED", False)
CONDUCTOR_LOCAL_SIGN_IN = environment.boolean("LOCAL_SIGN_IN", True)
CONDUCTOR_TRUSTED_PROXIES = environment.networks("TRUSTED_PROXIES", ("127.0.0.0/8", "::1/128"))

CONDUCTOR_OIDC_ISSUER = environment.address("OIDC_ISSUER", "https", "http")
CONDUCTOR_OIDC_CLIENT_ID = environment.text("OIDC_CLIENT_ID", "")
CONDUCTOR_OIDC_CLIENT_SECRET = environment.text("OIDC_CLIENT_SECRET", "")
CONDUCTOR_OIDC_SCOPES = environment.text("OIDC_SCOPES", "openid profile email")
CONDUCTOR_OIDC_NAME = environment.text("OIDC_NAME", "single sign-on")
CONDUCTOR_OIDC_USERNAME_CLAIM = environment.text("OIDC_USERNAME_CLAIM", "preferred_username")
CONDUCTOR_OIDC_GROUPS_CLAIM = environment.text("OIDC_GROUPS_CLAIM", "groups")
CONDUCTOR_EXTERNAL_GROUP_ROLES = environment.roles_by_group("EXTERNAL_GROUP_ROLES")
environment.require_together("OIDC_ISSUER", "OIDC_CLIENT_ID")

# The age in the cookie. The server checks the idle time and the age itself.
SESSION_COOKIE_AGE = CONDUCTOR_SESSION_HOURS * 3600

AXES_HANDLER = "conductor_app.admin.sign_in.throttle.SignInThrottle"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"], "username", "ip_address"]
AXES_FAILURE_LIMIT = "conductor_app.admin.sign_in.throttle.failure_limit"
AXES_COOLOFF_TIME = "conductor_app.admin.sign_in.throttle.lock_time"
AXES_CLIENT_IP_CALLABLE = "conductor_app.admin.sign_in.throttle.counted_address"
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
# The audit log of this server records sign-ins.
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
# W002: the sign-in page answers locked requests itself. W006: reports a false alarm for combined parameters.
AXES_SILENCED_CHECKS = ["axes.W002", "axes.W006"]

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "conductor_app.access.permission_preload.PermissionPreload",
    "django.contrib.auth.backends.ModelBackend",
    "conductor_app.admin.sign_in.openid.OpenIdBackend",
]
