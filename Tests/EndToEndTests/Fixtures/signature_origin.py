"""A server that takes a request only if its AWS Signature Version 4 fits every byte of it. Prints its port.

Works the signature out from what arrived, by the public description of it, with nothing of the client's library.
"""

import hashlib
import hmac
import http.server
import re
import urllib.parse

SECRET = b"signing-secret"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def problem(self, body):
        values = self.headers.get_all("Authorization") or []
        if len(values) != 1:
            return f"{len(values)} Authorization fields"
        match = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=AKIDTEST/(\S+), ?SignedHeaders=(\S+), ?Signature=([0-9a-f]{64})", values[0])
        if not match:
            return f"not a signature: {values[0]}"
        scope, names, signature = match.groups()
        if self.headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
            return "another body than the one that was signed"
        path, _, query = self.path.partition("?")
        pairs = sorted(pair if "=" in pair else pair + "=" for pair in query.split("&")) if query else []
        lines = []
        for name in names.split(";"):
            found = self.headers.get_all(name)
            if found is None:
                return f"the signed field {name} is missing"
            lines.append(name + ":" + ",".join(re.sub(" +", " ", value.strip()) for value in found) + "\n")
        request = "\n".join(
            [self.command, path, "&".join(pairs), "".join(lines), names, self.headers["x-amz-content-sha256"]])
        text = "\n".join(
            ["AWS4-HMAC-SHA256", self.headers["x-amz-date"], scope, hashlib.sha256(request.encode("latin1")).hexdigest()])
        key = b"AWS4" + SECRET
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        if not hmac.compare_digest(hmac.new(key, text.encode(), "sha256").hexdigest(), signature):
            return f"the signature does not fit:\n{request}"
        return None

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        problem = self.problem(body)
        text = b"" if self.command == "PUT" else b"<ListBucketResult><Name>bucket</Name></ListBucketResult>"
        if problem:
            self.log_error("%s", problem)
            text = b"<Error><Code>SignatureDoesNotMatch</Code></Error>"
        self.send_response(403 if problem else 200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = answer


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
