"""Asks for a token by the metadata service of a platform, as that platform's own library does. Prints the token.

    metadata_sdks.py google | azure | azure-app-service | aws-instance | aws-container
"""

import os
import sys

kind = sys.argv[1]
if kind == "google":
    import google.auth
    import google.auth.transport.requests

    credentials, project = google.auth.default()
    credentials.refresh(google.auth.transport.requests.Request())
    print(credentials.token, project, credentials.service_account_email)
elif kind.startswith("azure"):
    from azure.identity import ManagedIdentityCredential

    token = ManagedIdentityCredential().get_token(os.environ.get("SCOPE", "https://api.test/.default"))
    print(token.token)
else:
    import botocore.session

    session = botocore.session.get_session()
    keys = session.get_credentials().get_frozen_credentials()
    print(keys.access_key, keys.secret_key, keys.token)
