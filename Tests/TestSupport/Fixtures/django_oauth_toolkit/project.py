"""A Django project in one file: django-oauth-toolkit as authorization server, and an API that it protects.

    FOLDER=/tmp/x python project.py      # makes the database, a user and the clients
    FOLDER=/tmp/x gunicorn project:application

All written files are in FOLDER. Clients and the user have fixed names and secrets, for loopback only.
"""

import json
import os

import django
from django.conf import settings

FOLDER = os.environ["FOLDER"]


def signing_key():
    """The key that signs id tokens. The first call makes it."""
    file = os.path.join(FOLDER, "key.pem")
    if not os.path.exists(file):
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import rsa

        pem = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        with open(file, "wb") as output:
            output.write(pem)
    with open(file) as source:
        return source.read()


BASE_PAGE = "<!doctype html><html lang=en><title>Server</title><body>{% block content %}{% endblock %}</body></html>"
LOGIN_PAGE = """{% extends "oauth2_provider/base.html" %}{% block content %}<h1>Who are you?</h1>
<form method="post">{% csrf_token %}{{ form.as_p }}<button type="submit" id="login">Log in</button></form>
{% endblock %}"""

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
    # A fast hash is enough for a database that lives for seconds.
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
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                ],
                # The toolkit's own pages, without external resources.
                "loaders": [
                    (
                        "django.template.loaders.locmem.Loader",
                        {"oauth2_provider/base.html": BASE_PAGE, "registration/login.html": LOGIN_PAGE},
                    ),
                    "django.template.loaders.app_directories.Loader",
                ],
            },
        }
    ],
    OAUTH2_PROVIDER={
        "SCOPES": {"read": "Read", "write": "Write", "introspection": "Introspect", "openid": "Know who you are"},
        "DEFAULT_SCOPES": ["read"],
        "ACCESS_TOKEN_EXPIRE_SECONDS": int(os.environ.get("ACCESS_TOKEN_SECONDS", "300")),
        "ROTATE_REFRESH_TOKEN": True,
        "REFRESH_TOKEN_GRACE_PERIOD_SECONDS": 0,
        "REFRESH_TOKEN_REUSE_PROTECTION": True,
        "PKCE_REQUIRED": True,
        "OIDC_ENABLED": True,
        "OIDC_RSA_PRIVATE_KEY": signing_key(),
        "OAUTH2_VALIDATOR_CLASS": "validator.Validator",
        "ALLOWED_REDIRECT_URI_SCHEMES": ["http", "https", "com.example.app"],
        "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
        "OAUTH_DEVICE_VERIFICATION_URI": "http://127.0.0.1/o/device/",
        "DEVICE_FLOW_INTERVAL": 1,
    },
    LOGGING={
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"console": {"class": "logging.StreamHandler"}},
        "root": {"handlers": ["console"], "level": "INFO"},
    },
)
django.setup()

from django.contrib.auth.views import LoginView  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.http import HttpResponse, JsonResponse  # noqa: E402
from django.urls import include, path, re_path  # noqa: E402
from django.views.decorators.csrf import csrf_exempt  # noqa: E402
from oauth2_provider.models import get_access_token_model, get_refresh_token_model  # noqa: E402
from oauth2_provider.oauth2_backends import get_oauthlib_core  # noqa: E402
from oauth2_provider.views import DeviceAuthorizationView  # noqa: E402


@csrf_exempt
def api(request):
    """Answers the received request as JSON, or 401 with a challenge if the token is invalid."""
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
    """Numbers of tokens, for tests, which request them without the proxy."""
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
    """Makes every access token invalid but keeps refresh tokens, as an administrator or a crash may do."""
    get_access_token_model().objects.update(expires="2000-01-01T00:00:00Z")
    return HttpResponse(status=204)


@csrf_exempt
def revoke(request):
    """Revokes every refresh token with its access token, as a user or an administrator may do."""
    for token in get_refresh_token_model().objects.filter(revoked=None):
        token.revoke()
    return HttpResponse(status=204)


@csrf_exempt
def device_authorization(request):
    """The toolkit's view, with this server's port in the answer, which no setting can know."""
    response = DeviceAuthorizationView.as_view()(request)
    if response.status_code != 200:
        return response
    answer = json.loads(response.content)
    answer["verification_uri"] = request.build_absolute_uri("/o/device/")
    answer["verification_uri_complete"] = f"{answer['verification_uri']}?user_code={answer['user_code']}"
    return JsonResponse(answer)


urlpatterns = [
    path("accounts/login/", LoginView.as_view()),
    path("o/device-authorization/", device_authorization),
    path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
    re_path(r"^api/.*$", api),
    path("test/tokens", tokens),
    path("test/forget", forget),
    path("test/revoke", revoke),
]

application = get_wsgi_application()


def prepare():
    """Tables, one user, and clients for each grant."""
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from oauth2_provider.models import get_application_model

    call_command("migrate", verbosity=0, interactive=False)
    user = get_user_model().objects.create_user("ada", email="ada@example.com", password="ada's password")
    model = get_application_model()
    for name, grant, kind, secret in [
        ("machine", model.GRANT_CLIENT_CREDENTIALS, model.CLIENT_CONFIDENTIAL, "machine: a secret/with +%& signs"),
        ("person", model.GRANT_PASSWORD, model.CLIENT_CONFIDENTIAL, "person-secret"),
        ("public", model.GRANT_PASSWORD, model.CLIENT_PUBLIC, ""),
        ("browser", model.GRANT_AUTHORIZATION_CODE, model.CLIENT_CONFIDENTIAL, "browser-secret"),
        ("app", model.GRANT_AUTHORIZATION_CODE, model.CLIENT_PUBLIC, ""),
        ("old", model.GRANT_IMPLICIT, model.CLIENT_PUBLIC, ""),
        ("television", model.GRANT_DEVICE_CODE, model.CLIENT_PUBLIC, ""),
    ]:
        model.objects.create(
            name=name,
            client_id=name,
            client_secret=secret,
            client_type=kind,
            authorization_grant_type=grant,
            # Without a port, a loopback address stands for every port (RFC 8252 section 7.3).
            redirect_uris="http://127.0.0.1/callback http://[::1]/callback com.example.app:/oauth",
            algorithm=model.RS256_ALGORITHM,
            user=user,
        )


if __name__ == "__main__":
    prepare()
