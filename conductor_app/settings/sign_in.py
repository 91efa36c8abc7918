"""Settings of sign-in: limits, sessions and single sign-on."""

from . import environment, table

environment.require_together("OIDC_ISSUER", "OIDC_CLIENT_ID")

# The age in the cookie. The server checks the idle time and the age itself.
SESSION_COOKIE_AGE = table.read("SESSION_HOURS") * 3600

AXES_HANDLER = "conductor_app.access.sign_in.throttle.SignInThrottle"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"], "username", "ip_address"]
AXES_FAILURE_LIMIT = "conductor_app.access.sign_in.throttle.failure_limit"
AXES_COOLOFF_TIME = "conductor_app.access.sign_in.throttle.lock_time"
AXES_CLIENT_IP_CALLABLE = "conductor_app.access.sign_in.throttle.counted_address"
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
    "conductor_app.access.permissions.PermissionPreload",
    "django.contrib.auth.backends.ModelBackend",
    "conductor_app.access.sign_in.openid.OpenIdBackend",
]
