"""The servers for every proxy: an nginx origin that requires a token, and the endpoint that issues the token."""

import os
import secrets
import socket
import subprocess
import sys
from pathlib import Path

from .installation import program
from .machine import free_ports
from .processes import Process, wait_until

#: Host names in the requests. Proxies map them to the origin, so no DNS is involved.
PLAIN_HOST = "plain.test"
SECURE_HOST = "secure.test"
HTTP2_HOST = "http2.test"


def accepts_connections(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


class Stage:
    """Origin and token endpoint on loopback. A context manager: both run inside the `with`."""

    client_id = "benchmark"
    client_secret = "benchmark-secret"

    def __init__(self, directory, cores):
        self.directory = Path(directory)
        self.cores = cores
        self.token = secrets.token_urlsafe(192)  # 256 characters: between an opaque token and a JWT
        self.plain_port, self.tls_port, self.http2_port, self.token_port = free_ports(4)
        self.proxy_port, self.proxy_http2_port = free_ports(2)
        self.token_url = f"http://127.0.0.1:{self.token_port}/token"
        self.authority = self.directory / "ca.crt"
        self._processes = []

    def port(self, workload):
        """The proxy's port for this workload: nginx and Envoy have one port for each version of HTTP."""
        return self.proxy_http2_port if workload.streams else self.proxy_port

    def __enter__(self):
        self._make_certificates()
        try:
            self._start("origin", [program("nginx"), "-p", self.directory, "-c", self._origin_config()], self.plain_port)
            self._start(
                "token endpoint",
                [sys.executable, "-I", Path(__file__).with_name("token_endpoint.py")]
                + [self.token_port, self.token, self.client_id, self.client_secret],
                self.token_port,
            )
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error):
        for process in self._processes:
            process.stop()

    def _start(self, name, command, port):
        process = Process(command, self.cores.origin, self.directory / f"{name.replace(' ', '-')}.log")
        self._processes.append(process)
        wait_until(lambda: accepts_connections(port), process, f"the {name}", pause=0.01)

    def _make_certificates(self):
        def openssl(*words):
            subprocess.run(["openssl", *words], cwd=self.directory, check=True, capture_output=True)

        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        (self.directory / "leaf.ext").write_text(
            "subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n"
            "keyUsage=digitalSignature\nextendedKeyUsage=serverAuth\n"
        )
        openssl(
            *["req", "-x509", *key, "-days", "30", "-subj", "/CN=Benchmark CA", "-keyout", "ca.key", "-out", "ca.crt"],
            *["-addext", "keyUsage=critical,keyCertSign"],
        )
        openssl("req", *key, "-subj", "/CN=localhost", "-keyout", "origin.key", "-out", "origin.csr")
        openssl(
            *["x509", "-req", "-in", "origin.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"],
            *["-days", "30", "-extfile", "leaf.ext", "-out", "origin.crt"],
        )

    def nginx_preamble(self, name, master=True):
        """Directives of both the origin and the nginx peer: one worker, no logs, files in our folder."""
        folder = self.directory / name
        folder.mkdir(exist_ok=True)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
        return f"""
daemon off; worker_processes 1; master_process {"on" if master else "off"};
pid {folder}/pid; error_log {folder}/error.log crit; worker_rlimit_nofile 8192;
{"user root;" if os.geteuid() == 0 else ""}
events {{ worker_connections 4096; }}
http {{
  {temporary}
  access_log off; server_tokens off; tcp_nodelay on;
  keepalive_timeout 1h; keepalive_requests 1000000000; keepalive_time 24h; client_max_body_size 64m;
"""

    def _origin_config(self):
        files = self.directory / "files"
        files.mkdir()
        (files / "10m").write_bytes(bytes(range(256)) * (10 * 4096))
        socket_path = self.directory / "drain.sock"
        locations = f"""
    if ($http_authorization != "Bearer {self.token}") {{ return 401; }}
    add_header X-Origin-Scheme $scheme;
    root {files}; default_type application/octet-stream;
    location = /1k {{ return 200 "{"k" * 1024}"; }}
    location = /10m {{ }}
    # With an inner server, nginx reads the whole body before it answers.
    client_body_buffer_size 128k; proxy_http_version 1.1; proxy_pass_request_body off;
    proxy_set_header Connection ""; proxy_set_header Content-Length ""; proxy_set_header X-Length $request_length;
    location = /upload {{ proxy_pass http://drain; }}
    location = /call {{ proxy_pass http://drain; }}
"""
        config = self.directory / "origin.conf"
        config.write_text(
            self.nginx_preamble("origin")
            + f"""
  sendfile on; types {{ }}
  ssl_certificate {self.directory}/origin.crt; ssl_certificate_key {self.directory}/origin.key;
  ssl_protocols TLSv1.2 TLSv1.3;
  upstream drain {{ server unix:{socket_path}; keepalive 256; keepalive_requests 1000000000; }}
  server {{
    listen unix:{socket_path};
    location / {{ return 200 $http_x_length; }}
    location = /call {{ return 200 "{"k" * 1024}"; }}
  }}
  server {{ listen 127.0.0.1:{self.plain_port} backlog=4096; {locations} }}
  server {{ listen 127.0.0.1:{self.tls_port} ssl backlog=4096; {locations} }}
  server {{ listen 127.0.0.1:{self.http2_port} http2; http2_max_concurrent_streams 1000; {locations} }}
}}
"""
        )
        return config
