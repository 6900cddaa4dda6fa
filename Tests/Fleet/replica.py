"""One proxy of the fleet, in a network namespace of its own, and its configuration."""
import contextlib
import glob
import os
import signal
import subprocess
import threading
import time

HOST = "10.77.0.254"
# Identities of a client: as it was, with another client_id, and with another token endpoint.
VARIANTS = ("", "id", "endpoint")
# Loaded into a proxy, it changes the wall clock alone: an hour off, and 3 s wrong each minute.
FAKETIME = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
DRIFT = "+1h x1.05"


def sh(*words, check=True):
    return subprocess.run([str(word) for word in words], check=check, capture_output=True, text=True)


def identity(client, variant):
    """Its name at the endpoint."""
    return f"{client}.{variant}" if variant else client


class Replica:
    """One proxy in its own namespace."""

    def __init__(self, fleet, number):
        self.fleet, self.number = fleet, number
        self.space = f"fleet{os.getpid()}r{number}"
        self.address = f"10.77.0.{number + 1}"
        self.name = f"r{number}"
        self.folder = fleet.folder / self.name
        self.folder.mkdir()
        self.process = None
        self.drift, self.timeout, self.variant = None, "2s", ""
        self.faults, self.kills = [], []  # (begin, end, kind); when
        self.lock, self.filtering, self.configuring = threading.Lock(), threading.Lock(), threading.Lock()
        # Held from the end of one process to the start of the next.
        self.replacing = threading.RLock()
        link = f"v{number}"
        sh("ip", "netns", "add", self.space)
        sh("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", self.space)
        sh("ip", "link", "set", link, "master", "br0", "up")
        for command in (f"addr add {self.address}/24 dev eth0", "link set eth0 up", "link set lo up"):
            sh("ip", "-n", self.space, *command.split())

    def configure(self):
        endpoint = "/endpoint" if self.variant == "endpoint" else ""
        suffix = ".id" if self.variant == "id" else ""
        clients = "".join(
            f"""
  {name}:
    grant_type: refresh_token
    token_endpoint: http://{HOST}:{self.fleet.port}/token{endpoint}
    client_id: {name}{suffix}
    token_endpoint_auth_method: none
    refresh_token: {{file: {self.fleet.folder}/seeds/{identity(name, self.variant)}}}
    allow_plaintext: true
    timeout: {self.timeout}
    refresh_before: 1500ms
    headers: {{X-Replica: {self.name}}}"""
            for name in self.fleet.clients)
        upstreams = "".join(
            f"""
  - {{host: {name}.test, client: {name}, url: "http://{HOST}:{self.fleet.upstream_port}", allow_plaintext: true, token_wait: 5s}}"""
            for name in self.fleet.clients)
        (self.folder / "config.yaml").write_text(f"""
proxy: {{listen: {self.address}:8080, open: true}}
admin: {{listen: "127.0.0.1:8081", socket: {self.folder}/admin.sock}}
log: {{level: info, access: false}}
store:
  kind: postgres
  connection: {{file: {self.fleet.folder}/connection}}
  space: fleet
  key: {{file: {self.fleet.folder}/store.key}}
clients:{clients}
upstreams:{upstreams}
""")

    def start(self):
        environment = dict(os.environ, HOME=str(self.folder))
        command = ["ip", "netns", "exec", self.space]
        if self.drift:
            environment |= {"LD_PRELOAD": FAKETIME[0], "FAKETIME": self.drift, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        log = open(self.folder / "log", "ab")
        with self.lock:
            self.process = subprocess.Popen(
                command + [self.fleet.executable, "serve", "--config", str(self.folder / "config.yaml")],
                stdout=log, stderr=log, env=environment, cwd=self.folder, start_new_session=True)
        log.close()

    def signal(self, number):
        with self.lock, contextlib.suppress(ProcessLookupError):
            # While another thread waits for the process, `poll` may say that it runs although it has ended.
            if self.process and self.process.poll() is None:
                os.killpg(self.process.pid, number)

    def kill(self):
        self.kills.append(self.fleet.authority.now())
        self.signal(signal.SIGKILL)
        self.process.wait()

    def reload(self, variant=None):
        """Another timeout for all clients, or another identity."""
        with self.configuring:
            if variant is None:
                self.timeout = "3s" if self.timeout == "2s" else "2s"
            else:
                self.variant = variant
            self.configure()
        self.signal(signal.SIGHUP)

    def restart(self, in_order=True):
        with self.replacing:
            if in_order:
                self.signal(signal.SIGTERM)
                self.process.wait()
            else:
                self.kill()
                time.sleep(0.5)
            if not self.fleet.stopping.is_set():
                self.start()

    def filter(self, *rule):
        """Packets that leave for these ports; no rule lets all pass. The last fault counts."""
        with self.filtering:
            self.set_filter(*rule)

    def set_filter(self, *rule):
        sh("ip", "netns", "exec", self.space, "nft", "flush", "ruleset")
        if rule:
            for line in ("add table inet f", "add chain inet f out { type filter hook output priority 0; }",
                         "add chain inet f in { type filter hook input priority 0; }",
                         f"add rule inet f out tcp dport {rule[0]} {rule[1]}",
                         f"add rule inet f in tcp sport {rule[0]} {'drop' if rule[1] == 'drop' else 'accept'}"):
                sh("ip", "netns", "exec", self.space, "nft", line)

    def note(self, kind, begin, seconds):
        self.faults.append((begin - 0.05, begin + seconds, kind))

    def during(self, kind, begin, end):
        return any(one[2] in kind and one[0] <= end and begin <= one[1] for one in self.faults)
