#!/usr/bin/env python3
"""Counts the cost of many proxies for one PostgreSQL: connections, token requests at a common start, statements.

    Tests/Fleet/run many [--replicas 40] [--pooler session|transaction] [--seconds 20] [--max-connections 100] [--keep]

Exit code 1 if a number is past the bound that docs/fleet.md states.
"""
import argparse
import collections
import http.client
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from authority import Authority, serve  # noqa: E402
from database import Database  # noqa: E402
from fleet import enter_namespaces  # noqa: E402
from replica import sh  # noqa: E402

HOST = "127.0.0.1"
# Beginnings of the statements in Sources/PostgresStore/Statements.swift, without their comments.
STATEMENTS = {
    "SET holder = CASE": "mark", "SET holder = NULL, held_until = NULL": "unmark", "SET revision = $4": "swap",
    "INSERT INTO heimdallr.token": "make", "ANY ($2::text[])": "poll", "FROM heimdallr.token AS token WHERE": "read",
}


class Many:
    def __init__(self, options):
        self.options = options
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="heimdallr-many-"))
        self.folder.chmod(0o755)
        # Tokens of the first last; those of the others rotate twice a second in all.
        self.lasting, self.rotating = [f"l{number}" for number in range(3)], [f"r{number}" for number in range(5)]
        self.authority = Authority(self.lasting + self.rotating, 3600, 0, lambda client: None)
        self.authority.lives = {client: 4 for client in self.rotating}
        self.processes, self.failures = [], []
        self.most, self.sampling, self.asking = 0, threading.Event(), threading.Event()

    def build(self):
        sh("ip", "link", "set", "lo", "up")
        port = serve(self.authority, HOST)
        self.database = Database(
            self.folder, HOST, pooler=self.options.pooler, max_connections=self.options.max_connections,
            more="shared_preload_libraries = 'pg_stat_statements'\npg_stat_statements.track_utility = off")
        self.database.start()
        self.database.sql(0, "CREATE EXTENSION pg_stat_statements")
        key = subprocess.run([self.options.executable, "keygen"], check=True, capture_output=True).stdout
        for name, content in [("store.key", key), ("connection", self.database.connection.encode())]:
            (self.folder / name).write_bytes(content)
            (self.folder / name).chmod(0o600)
        self.database.make_tables(self.options.executable)
        clients = "".join(
            f"""
  {name}: {{grant_type: refresh_token, token_endpoint: "http://{HOST}:{port}/token", client_id: {name},
    token_endpoint_auth_method: none, refresh_token: {self.authority.families[name].current}, allow_plaintext: true,
    refresh_before: 1500ms, headers: {{X-Replica: one}}}}"""
            for name in self.lasting + self.rotating)
        upstreams = "".join(
            f"""
  - {{host: {name}.test, client: {name}, url: "http://{HOST}:{port}", allow_plaintext: true, token_wait: 20s}}"""
            for name in self.lasting + self.rotating)
        for number in range(self.options.replicas):
            path = self.folder / f"{number}.yaml"
            path.write_text(f"""
proxy: {{listen: "{HOST}:{20000 + number}", open: true}}
log: {{level: info, access: false}}
store: {{kind: postgres, connection: {{file: {self.folder}/connection}}, key: {{file: {self.folder}/store.key}}}}
clients:{clients}
upstreams:{upstreams}
""")
            path.chmod(0o600)

    def start(self, number):
        with open(self.folder / f"{number}.log", "ab") as log:
            self.processes.append(subprocess.Popen(
                [self.options.executable, "serve", "--config", self.folder / f"{number}.yaml"], stdout=log, stderr=log,
                cwd=self.folder, env=dict(os.environ, HOME=str(self.folder))))

    def ask(self, number, client):
        try:
            connection = http.client.HTTPConnection(HOST, 20000 + number, timeout=30)
            connection.request("GET", f"http://{client}.test/{client}")
            status = connection.getresponse().status
            connection.close()
            return status
        except (OSError, http.client.HTTPException):
            return 0

    # MARK: Counting

    def connections(self):
        """Of proxies; those of the pooler where there is one."""
        return int(self.database.sql(0, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'proxy'"))

    def sample(self):
        while not self.sampling.is_set():
            self.most = max(self.most, self.connections())
            time.sleep(0.1)

    def statements(self):
        counts = collections.Counter()
        rows = self.database.sql(
            0, "SELECT calls, regexp_replace(query, '\\s+', ' ', 'g') FROM pg_stat_statements"
            # The time limit is a part of each statement's round trip. Constants are not shown here.
            " WHERE userid = 'proxy'::regrole AND query NOT LIKE '%set_config(%greatest(%'")
        for row in rows.splitlines():
            calls, _, query = row.partition("|")
            counts[next((name for words, name in STATEMENTS.items() if words in query), "other")] += int(calls)
        return counts

    def requests(self, clients):
        kinds = ("rotated", "again", "reuse", "dead", "unknown", "foreign")
        return collections.Counter(event[2] for event in self.authority.log if event[1] in kinds and event[2] in clients)

    def judge(self, text, value, bound):
        is_kept = value <= bound
        print(f"{'kept   ' if is_kept else 'BROKEN '} {text}: {value:.4g}, at most {bound:g}", flush=True)
        if not is_kept:
            self.failures.append(text)

    # MARK: Run

    def each(self, work):
        threads = [threading.Thread(target=work, args=(number,)) for number in range(self.options.replicas)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def first(self, number):
        deadline = time.monotonic() + 120
        waiting = list(self.lasting)
        while waiting and time.monotonic() < deadline:
            waiting = [client for client in waiting if self.ask(number, client) != 200]
            time.sleep(0.05)

    def use(self, number):
        while not self.asking.is_set():
            for client in self.rotating:
                self.ask(number, client)
            self.asking.wait(1.5)

    def count(self, seconds):
        before, log = self.statements(), len(self.authority.log)
        time.sleep(seconds)
        counts = self.statements() - before
        return counts, sum(1 for event in self.authority.log[log:] if event[1] == "rotated")

    def run(self):
        replicas = self.options.replicas
        sampler = threading.Thread(target=self.sample, daemon=True)
        sampler.start()
        begin = time.monotonic()
        for number in range(replicas):
            self.start(number)
        self.each(self.first)
        print(f"{replicas} replicas serve {time.monotonic() - begin:.1f} s after the start of all at once")
        self.judge("connections at the start", self.most, 2 * replicas)
        requests = self.requests(self.lasting)
        self.judge("token requests for each client at the start", max(requests.values()), 1)
        refused = sum((self.database.folder / f"log{index}").read_text().count("FATAL") for index in range(2))
        self.judge("connections that the database refused", refused, 0)

        deadline = time.monotonic() + 40
        while time.monotonic() < deadline and self.connections() > replicas:
            time.sleep(0.5)
        self.judge("connections at rest", self.connections(), replicas)
        self.sampling.set()
        sampler.join()
        counts, _ = self.count(self.options.seconds)
        print("        at rest:", dict(counts))
        polling = 1.2 * replicas if self.options.pooler else 0.1 * replicas
        self.judge("statements a second at rest", sum(counts.values()) / self.options.seconds, polling)

        users = threading.Thread(target=self.each, args=(self.use,), daemon=True)
        users.start()
        time.sleep(6)
        counts, rotations = self.count(self.options.seconds)
        self.asking.set()
        users.join()
        print(f"        {rotations / self.options.seconds:.2f} rotations a second:", dict(counts))
        least = max(1, rotations)
        self.judge("statements a rotation", (sum(counts.values()) - counts["poll"]) / least, 1.25 * replicas + 4)
        self.judge("statements a second", sum(counts.values()) / self.options.seconds,
                   least / self.options.seconds * (1.25 * replicas + 4) + polling)
        bad = [event for event in self.authority.log if event[1] in ("reuse", "dead", "unknown", "foreign", "wrong")]
        self.judge("refresh tokens sent twice, and wrong access tokens", len(bad), 0)
        return 1 if self.failures else 0

    def close(self):
        for process in self.processes:
            process.kill()
        if hasattr(self, "database"):
            self.database.stop()
        if self.options.keep:
            print("kept:", self.folder)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, default=40)
    parser.add_argument("--pooler", choices=("session", "transaction"), help="replicas reach the database through pgbouncer")
    parser.add_argument("--seconds", type=int, default=20, help="of each count")
    parser.add_argument("--max-connections", type=int, default=100)
    parser.add_argument("--executable", default=os.environ.get("HEIMDALLR_PROXY_EXECUTABLE"))
    parser.add_argument("--keep", action="store_true", help="leave the folder with logs")
    options = parser.parse_args()
    enter_namespaces()
    many = Many(options)
    try:
        many.build()
        return many.run()
    finally:
        many.close()


if __name__ == "__main__":
    sys.exit(main())
