"""Signs requests by botocore: reads a JSON list of requests from a file, prints a JSON list of signatures."""

import json
import sys

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

signatures = []
for item in json.load(open(sys.argv[1], encoding="utf-8")):
    credentials = Credentials(item["id"], item["secret"], item.get("token") or None)
    kind = S3SigV4Auth if item["service"] == "s3" else SigV4Auth
    auth = kind(credentials, item["service"], item["region"])
    request = AWSRequest(method=item["method"], url=item["url"], data=item.get("body", "").encode("latin-1"))
    for name, value in item["fields"]:
        request.headers[name] = value  # adds, never replaces
    request.context["timestamp"] = item["date"]
    canonical = auth.canonical_request(request)
    signatures.append(auth.signature(auth.string_to_sign(request, canonical), request))
print(json.dumps(signatures))
