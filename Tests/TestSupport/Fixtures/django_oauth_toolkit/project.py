"""A Django project in one file: django-oauth-toolkit as authorization server, and an API that it protects.

    FOLDER=/tmp/x python project.py      # makes the database, a user and the clients
    FOLDER=/tmp/x gunicorn project:application

Everything it writes is in FOLDER. Clients and the user have fixed names and secrets: this is for loopback only.
"""

import json
import os

import django
from django.conf import settings

FOLDER = os.environ["FOLDER"]

settings.configure(
    DEBUG=False,
    SECRET_KEY="for tests only, on loopback, with a database that lives for seconds",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF="project",
    USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": os.path.join(FOLDER, "database.sqlite3"),
            "OPTIONS": {"timeout": 30, "transaction_mode": "IMMEDIATE"},
        }
    },
    # Fast to check; nobody attacks a database that lives for seconds.
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "oauth2_provider",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    OAUTH2_PROVIDER={
        "SCOPES": {"read": "Read", "write": "Write", "introspection": "Introspect"},
        "DEFAULT_SCOPES": ["read"],
        "ACCESS_TOKEN_EXPIRE_SECONDS": int(os.environ.get("ACCESS_TOKEN_SECONDS", "300")),
        "ROTATE_REFRESH_TOKEN": True,
        "REFRESH_TOKEN_GRACE_PERIOD_SECONDS": 0,
        "REFRESH_TOKEN_REUSE_PROTECTION": True,
        "PKCE_REQUIRED": False,
    },
    LOGGING={
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"console": {"class": "logging.StreamHandler"}},
        "root": {"handlers": ["console"], "level": "INFO"},
    },
)
django.setup()

from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.http import HttpResponse, JsonResponse  # noqa: E402
from django.urls import include, path, re_path  # noqa: E402
from django.views.decorators.csrf import csrf_exempt  # noqa: E402
from oauth2_provider.models import get_access_token_model, get_refresh_token_model  # noqa: E402
from oauth2_provider.oauth2_backends import get_oauthlib_core  # noqa: E402


@csrf_exempt
def api(request):
    """401 with a challenge unless the token is good, else what arrived, as JSON."""
    body = request.body.decode("latin-1")
    valid, grant = get_oauthlib_core().verify_request(request, scopes=["read"])
    if not valid:
        response = JsonResponse({"error": "no good token"}, status=401)
        challenge = 'Bearer realm="api"'
        if "Authorization" in request.headers:
            challenge += ', error="invalid_token"'
        response["WWW-Authenticate"] = challenge
        return response
    return JsonResponse(
        {
            "method": request.method,
            "target": request.get_full_path(),
            "body": body,
            "headers": dict(request.headers),
            "client": grant.access_token.application.client_id,
            "user": grant.user.get_username() if grant.user else None,
            "scope": grant.access_token.scope,
        }
    )


def tokens(request):
    """How many tokens there are: what a test asks behind the proxy's back."""
    access, refresh = get_access_token_model(), get_refresh_token_model()
    return JsonResponse(
        {
            "access": access.objects.count(),
            "refresh": refresh.objects.count(),
            "refresh_revoked": refresh.objects.exclude(revoked=None).count(),
        }
    )


@csrf_exempt
def forget(request):
    """Makes every access token invalid, refresh tokens stay: what an administrator or a crash may do."""
    get_access_token_model().objects.update(expires="2000-01-01T00:00:00Z")
    return HttpResponse(status=204)


@csrf_exempt
def revoke(request):
    """Revokes every refresh token, and with it its access token: what a user or an administrator may do."""
    for token in get_refresh_token_model().objects.filter(revoked=None):
        token.revoke()
    return HttpResponse(status=204)


urlpatterns = [
    path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
    re_path(r"^api/.*$", api),
    path("test/tokens", tokens),
    path("test/forget", forget),
    path("test/revoke", revoke),
]

application = get_wsgi_application()


def prepare():
    """Tables, one user, one client a grant."""
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from oauth2_provider.models import get_application_model

    call_command("migrate", verbosity=0, interactive=False)
    user = get_user_model().objects.create_user("ada", password="ada's password")
    model = get_application_model()
    for name, grant, kind, secret in [
        ("machine", model.GRANT_CLIENT_CREDENTIALS, model.CLIENT_CONFIDENTIAL, "machine: a secret/with +%& signs"),
        ("person", model.GRANT_PASSWORD, model.CLIENT_CONFIDENTIAL, "person-secret"),
        ("public", model.GRANT_PASSWORD, model.CLIENT_PUBLIC, ""),
    ]:
        model.objects.create(
            name=name,
            client_id=name,
            client_secret=secret,
            client_type=kind,
            authorization_grant_type=grant,
            user=user,
        )


if __name__ == "__main__":
    prepare()
