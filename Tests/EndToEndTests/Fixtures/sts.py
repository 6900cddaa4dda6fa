"""A Security Token Service that checks each signature by AWS's public description of it. Prints its port.

Keys `AKIDTEST` with `signing-secret` may take the role `arn:aws:iam::1:role/reader` with the external id `x&y`, and may ask for a
session of their own; the web identity `header.claims.signature` may take the role, too. Keys live for the wanted time.
"""

import datetime
import hashlib
import hmac
import http.server
import re
import urllib.parse

ROLE = "arn:aws:iam::1:role/reader"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    count = 0

    def log_message(self, *_):
        pass

    def problem(self, body):
        match = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=AKIDTEST/(\d{8}/eu-west-1/sts/aws4_request), SignedHeaders=(\S+), Signature=([0-9a-f]{64})",
            self.headers.get("Authorization", ""))
        if not match:
            return "MissingAuthenticationToken"
        scope, names, signature = match.groups()
        lines = "".join(f"{name}:{self.headers[name].strip()}\n" for name in names.split(";"))
        request = "\n".join(["POST", self.path, "", lines, names, hashlib.sha256(body).hexdigest()])
        text = "\n".join(
            ["AWS4-HMAC-SHA256", self.headers["x-amz-date"], scope, hashlib.sha256(request.encode()).hexdigest()])
        key = b"AWS4signing-secret"
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        fits = hmac.compare_digest(hmac.new(key, text.encode(), "sha256").hexdigest(), signature)
        return None if fits and "host" in names.split(";") else "SignatureDoesNotMatch"

    def answer(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        form = dict(urllib.parse.parse_qsl(body.decode()))
        action = form.get("Action")
        problem = None
        if action == "AssumeRoleWithWebIdentity":
            if form.get("WebIdentityToken") != "header.claims.signature" or "Authorization" in self.headers:
                problem = "InvalidIdentityToken"
        else:
            problem = self.problem(body)
        if action != "GetSessionToken" and form.get("RoleArn") != ROLE:
            problem = problem or "AccessDenied"
        if action == "AssumeRole" and form.get("ExternalId") != "x&y":
            problem = problem or "AccessDenied"
        if problem:
            print("refused", problem, flush=True)
            return self.answer(403, f"<ErrorResponse><Error><Code>{problem}</Code><Message>no</Message></Error></ErrorResponse>")
        Handler.count += 1
        end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=int(form.get("DurationSeconds", "3600")))
        print("issued", action, form.get("RoleSessionName"), flush=True)
        self.answer(200, f"""<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <{action}Result>
    <Credentials>
      <SessionToken>session/{Handler.count}+token=</SessionToken>
      <SecretAccessKey>secret/{Handler.count}</SecretAccessKey>
      <Expiration>{end.strftime("%Y-%m-%dT%H:%M:%SZ")}</Expiration>
      <AccessKeyId>ASIA{Handler.count}</AccessKeyId>
    </Credentials>
  </{action}Result>
</{action}Response>""")


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
