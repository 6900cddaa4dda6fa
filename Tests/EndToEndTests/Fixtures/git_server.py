"""Serves a folder of bare repositories through `git http-backend`: git_server.py FOLDER TOKEN. Prints its port.

Whoever comes without `Authorization: Bearer TOKEN` gets 401. Bodies come with a length or in chunks.
"""

import http.server
import os
import subprocess
import sys
import urllib.parse

FOLDER, TOKEN = sys.argv[1:]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(pieces)

    def answer(self):
        body = self.body()
        if self.headers.get_all("Authorization") != ["Bearer " + TOKEN]:
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        url = urllib.parse.urlsplit(self.path)
        environment = dict(
            os.environ, GIT_PROJECT_ROOT=FOLDER, GIT_HTTP_EXPORT_ALL="1", PATH_INFO=urllib.parse.unquote(url.path),
            QUERY_STRING=url.query, REQUEST_METHOD=self.command, REMOTE_USER="bearer", REMOTE_ADDR="127.0.0.1",
            CONTENT_TYPE=self.headers.get("Content-Type", ""), CONTENT_LENGTH=str(len(body)),
            HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding", ""),
            GIT_PROTOCOL=self.headers.get("Git-Protocol", ""))
        output = subprocess.run(["git", "http-backend"], input=body, env=environment, stdout=subprocess.PIPE).stdout
        head, _, content = output.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = next((int(value.split()[0]) for name, value in fields if name == "Status"), 200)
        self.send_response(status)
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = answer

    def log_message(self, format, *arguments):
        sys.stderr.write("%s %s\n" % (self.requestline, self.headers.get("Transfer-Encoding", "")))


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
