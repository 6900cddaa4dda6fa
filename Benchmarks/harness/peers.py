"""The proxies under test. Each gets the same requests, in absolute form, for the same hosts."""

import json
import os
import subprocess
from pathlib import Path

from . import installation
from .machine import BenchmarkError
from .stage import HTTP2_HOST, PLAIN_HOST, SECURE_HOST


def first_line(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=20)
    text = (done.stdout + done.stderr).strip()
    return text.splitlines()[0] if text else "unknown"


class HeimdallrProxy:
    """Our proxy: fetches its token by client credentials."""

    name = "heimdallr-proxy"

    def __init__(self, binary, threads=1, upstreams=2, settings="", more_upstreams=""):
        """
        threads: event loops.
        upstreams: number of configured upstreams. All beyond two are never used.
        settings, more_upstreams: lines of YAML for `proxy` and for `upstreams`.
        """
        self.binary = Path(binary).resolve()
        unused = [(f"unused-{n}.example", "https://localhost", "") for n in range(upstreams - 2)]
        self.upstreams = "".join(self._upstream(*upstream) for upstream in unused) + more_upstreams
        self.settings = f"  threads: {threads}\n{settings}"

    @staticmethod
    def _upstream(host, url, more):
        return f"  - {{host: {host}, url: '{url}', client: benchmark, allow_plaintext: true{more}}}\n"

    def install(self):
        if not os.access(self.binary, os.X_OK):
            raise BenchmarkError(f"{self.binary} is missing: run `deploy/release`, or name it with --binary.")

    def version(self):
        return first_line(self.binary, "--version")

    def command(self, stage, single_process=False):
        """`single_process`: for valgrind, which can't read our debug information, and makes handshakes slow."""
        binary, patience = self.binary, ""
        if single_process:
            binary = stage.directory / "heimdallr-proxy"
            if not binary.exists():
                subprocess.run(["strip", "--strip-debug", "-o", binary, self.binary], check=True, capture_output=True)
            patience = ", connect_timeout: 2m"
        config = stage.directory / "heimdallr-proxy.yaml"
        config.write_text(
            f"""\
proxy:
  listen: [127.0.0.1:{stage.proxy_port}, 127.0.0.1:{stage.proxy_http2_port}]
{self.settings}
log: {{level: warning, access: false}}
tls: {{ca_file: "{stage.authority}"}}
clients:
  benchmark:
    grant_type: client_credentials
    token_endpoint: "{stage.token_url}"
    client_id: "{stage.client_id}"
    client_secret: "{stage.client_secret}"
    allow_plaintext: true
upstreams:
"""
            + self.upstreams
            + self._upstream(PLAIN_HOST, f"http://localhost:{stage.plain_port}", patience)
            + self._upstream(SECURE_HOST, f"https://localhost:{stage.tls_port}", patience)
            + self._upstream(HTTP2_HOST, f"http://localhost:{stage.http2_port}", ", http2: prior-knowledge" + patience)
        )
        return [binary, "serve", "--config", config]


class Envoy:
    """Envoy with one worker; the credential injector fetches its token by client credentials."""

    name = "envoy"

    def install(self):
        self.binary = installation.envoy()

    def version(self):
        words = first_line(self.binary, "--version").split("version:")[-1].strip().split("/")
        return f"envoy {words[1]}" if len(words) > 1 else words[0]

    def command(self, stage, single_process=False):
        config = stage.directory / "envoy.json"
        config.write_text(json.dumps(self._config(stage), indent=1))
        return [self.binary, "-c", config, "--concurrency", 1, "--disable-hot-restart", "-l", "error"]

    def _config(self, stage):
        def typed(name, kind, **fields):
            return {"name": name, "typed_config": {"@type": "type.googleapis.com/envoy.extensions." + kind, **fields}}

        def address(port):
            return {"socket_address": {"address": "127.0.0.1", "port_value": port}}

        def cluster(name, port, **fields):
            plenty = {"max_connections": 10_000, "max_pending_requests": 10_000, "max_requests": 10_000}
            endpoint = {"endpoint": {"address": address(port)}}
            return {
                "name": name,
                "type": "STATIC",
                "connect_timeout": "5s",
                "circuit_breakers": {"thresholds": [plenty]},
                "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
                **fields,
            }

        def virtual_host(host, name):
            route = {"match": {"prefix": "/"}, "route": {"cluster": name, "timeout": "0s"}}
            return {"name": name, "domains": [host], "routes": [route]}

        tls = typed(
            "envoy.transport_sockets.tls",
            "transport_sockets.tls.v3.UpstreamTlsContext",
            sni="localhost",
            common_tls_context={
                "validation_context": {
                    "trusted_ca": {"filename": str(stage.authority)},
                    "match_typed_subject_alt_names": [{"san_type": "DNS", "matcher": {"exact": "localhost"}}],
                }
            },
        )
        credential = typed(
            "envoy.http.injected_credentials.oauth2",
            "http.injected_credentials.oauth2.v3.OAuth2",
            token_endpoint={"cluster": "token", "timeout": "5s", "uri": stage.token_url},
            client_credentials={"client_id": stage.client_id, "client_secret": {"name": "secret"}},
        )
        filters = [
            typed(
                "envoy.filters.http.credential_injector",
                "filters.http.credential_injector.v3.CredentialInjector",
                overwrite=True,
                credential=credential,
            ),
            typed(
                "envoy.filters.http.router",
                "filters.http.router.v3.Router",
                suppress_envoy_headers=True,
                dynamic_stats=False,
            ),
        ]
        hosts = [(PLAIN_HOST, "plain"), (SECURE_HOST, "secure"), (HTTP2_HOST, "http2")]

        def listener(port, version):
            manager = typed(
                "envoy.filters.network.http_connection_manager",
                "filters.network.http_connection_manager.v3.HttpConnectionManager",
                stat_prefix="in",
                codec_type=version,
                generate_request_id=False,
                http_filters=filters,
                route_config={"virtual_hosts": [virtual_host(*host) for host in hosts]},
            )
            return {"address": address(port), "filter_chains": [{"filters": [manager]}]}

        http2 = {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": {"http2_protocol_options": {}},
            }
        }
        return {
            "static_resources": {
                "secrets": [{"name": "secret", "generic_secret": {"secret": {"inline_string": stage.client_secret}}}],
                "listeners": [listener(stage.proxy_port, "HTTP1"), listener(stage.proxy_http2_port, "HTTP2")],
                "clusters": [
                    cluster("plain", stage.plain_port),
                    cluster("secure", stage.tls_port, transport_socket=tls),
                    cluster("http2", stage.http2_port, typed_extension_protocol_options=http2),
                    cluster("token", stage.token_port),
                ],
            }
        }


class Nginx:
    """nginx with one worker and a fixed token. It can't fetch tokens, so it is a lower bound, not an alternative."""

    name = "nginx"

    def install(self):
        installation.require("nginx")
        self.binary = installation.program("nginx")

    def version(self):
        return first_line(self.binary, "-v").replace("nginx version: ", "")

    def command(self, stage, single_process=False):
        config = stage.directory / "nginx-peer.conf"
        pool = "keepalive 256; keepalive_requests 1000000000; keepalive_time 24h;"
        forward = f"""proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
      proxy_set_header Authorization "Bearer {stage.token}"; proxy_request_buffering off; proxy_max_temp_file_size 0;
      proxy_buffers 8 64k; proxy_busy_buffers_size 128k;"""
        config.write_text(
            stage.nginx_preamble("nginx-peer", master=not single_process)
            + f"""
  upstream plain {{ server 127.0.0.1:{stage.plain_port}; {pool} }}
  upstream secure {{ server 127.0.0.1:{stage.tls_port}; {pool} }}
  upstream http2 {{ server 127.0.0.1:{stage.http2_port}; {pool} }}
  server {{
    listen 127.0.0.1:{stage.proxy_port} backlog=4096; server_name {PLAIN_HOST};
    location / {{ proxy_pass http://plain; {forward} }}
  }}
  server {{
    listen 127.0.0.1:{stage.proxy_port}; server_name {SECURE_HOST};
    location / {{
      proxy_pass https://secure; proxy_ssl_server_name on; proxy_ssl_name localhost; proxy_ssl_verify on;
      proxy_ssl_trusted_certificate {stage.authority}; proxy_ssl_protocols TLSv1.2 TLSv1.3; {forward}
    }}
  }}
  server {{
    listen 127.0.0.1:{stage.proxy_http2_port} http2 backlog=4096; server_name {HTTP2_HOST}; http2_max_concurrent_streams 1000;
    location / {{ grpc_pass grpc://http2; grpc_set_header Authorization "Bearer {stage.token}"; }}
  }}
}}
"""
        )
        return [self.binary, "-p", stage.directory, "-c", config]


def all_peers(binary, upstreams=2):
    return [HeimdallrProxy(binary, upstreams=upstreams), Envoy(), Nginx()]
