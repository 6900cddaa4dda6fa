#!/usr/bin/env python3
"""The proof of docs/fleet.md: replicas on one PostgreSQL, a token endpoint that rotates strictly, and a fault each second.

    Tests/Fleet/run [--seconds 600] [--replicas 5] [--clients 20] [--life 3] [--grace 0] [--pooler session|transaction]
                    [--seed N] [--quiet] [--keep]

Each replica is a heimdallr-proxy in a network namespace of its own, so that packets to the database or to the token
endpoint can be dropped or refused for one of them. Afterwards the log of the endpoint says whether the promises were kept;
exit code 1 if one was not. Needs root, for the namespaces; nothing outside is touched, and all ends with this process.
"""
import argparse
import collections
import http.client
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from authority import Authority, serve  # noqa: E402
from database import Database  # noqa: E402
from replica import DRIFT, FAKETIME, HOST, VARIANTS, Replica, identity, sh  # noqa: E402

# A holder that is away for so long has lost its lease.
PAST = ("stop past the mark", "cut off past the mark")


class Fleet:
    def __init__(self, options):
        self.options = options
        self.executable = options.executable
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="heimdallr-fleet-"))
        self.folder.chmod(0o755)
        self.clients = [f"c{index:02}" for index in range(options.clients)]
        self.stopping = threading.Event()
        self.results = collections.Counter()
        self.timeline = []
        self.revisions, self.backwards = {}, []
        self.variant, self.rolling = "", threading.Lock()
        (self.folder / "seeds").mkdir()
        names = [identity(client, variant) for client in self.clients for variant in VARIANTS]
        self.authority = Authority(names, options.life, options.grace, self.sign_in_again)
        for name in names:
            self.write_seed(name, self.authority.families[name].current)
        self.dead_families = []

    # Signs in again, as a person does after a revocation.
    def sign_in_again(self, client):
        def later():
            time.sleep(1)
            with self.authority.lock:
                token = self.authority.seed(client)
            self.write_seed(client, token)
        self.dead_families.append((self.authority.now(), client))
        threading.Thread(target=later, daemon=True).start()

    def write_seed(self, client, token):
        path = self.folder / "seeds" / client
        new = path.with_name(f".{client}.new")
        new.write_text(token)
        new.chmod(0o600)
        new.rename(path)

    def say(self, *words):
        if not self.options.quiet:
            print(f"{self.authority.now():7.1f}", *words, flush=True)

    # MARK: Set up

    def build(self):
        sh("ip", "link", "set", "lo", "up")
        sh("ip", "link", "add", "br0", "type", "bridge")
        sh("ip", "addr", "add", f"{HOST}/24", "dev", "br0")
        sh("ip", "link", "set", "br0", "up")
        self.port, self.upstream_port = serve(self.authority, HOST), serve(self.authority, HOST)
        self.database = Database(self.folder, HOST, pooler=self.options.pooler)
        self.database.start()
        key = subprocess.run([self.executable, "keygen"], check=True, capture_output=True).stdout
        (self.folder / "store.key").write_bytes(key)
        (self.folder / "store.key").chmod(0o600)
        (self.folder / "connection").write_text(self.database.connection)
        (self.folder / "connection").chmod(0o600)
        self.database.make_tables(self.executable)
        self.replicas = [Replica(self, number) for number in range(self.options.replicas)]
        for replica in self.replicas:
            replica.drift = DRIFT if replica.number == 1 and FAKETIME else None
            replica.configure()
            replica.start()
        if not FAKETIME:
            print("libfaketime is not here: every clock is right")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not all(self.ask(one, self.clients[0]) == 200 for one in self.replicas):
            time.sleep(0.3)

    def ask(self, replica, client):
        try:
            connection = http.client.HTTPConnection(replica.address, 8080, timeout=8)
            connection.request("GET", f"http://{client}.test/{client}")
            status = connection.getresponse().status
            connection.close()
            return status
        except OSError:
            return 0
        except http.client.HTTPException:
            return 0

    def drive(self, replica):
        chance = random.Random(f"{self.options.seed}-{replica.number}")
        while not self.stopping.is_set():
            client = chance.choice(self.clients)
            begin = self.authority.now()
            status = self.ask(replica, client)
            troubled = replica.during(("kill", "stop briefly") + PAST, begin - 3, self.authority.now())
            self.results[("at a replica that was up" if not troubled else "at one that was not", status)] += 1
            time.sleep(chance.uniform(0.005, 0.04))

    def watch_revisions(self):
        while not self.stopping.is_set():
            for client, revision in self.database.revisions():
                if revision < self.revisions.get(client, 0):
                    self.backwards.append((self.authority.now(), client, self.revisions[client], revision))
                self.revisions[client] = max(revision, self.revisions.get(client, 0))
            time.sleep(0.5)

    # MARK: Faults

    def fault(self, chance):
        replica = chance.choice(self.replicas)
        kinds = [
            ("kill", 3), ("stop briefly", 2), ("stop past the mark", 1), ("cut off past the mark", 1), ("database killed", 1),
            ("partition from the database", 3), ("partition from the endpoint", 3), ("answers lost", 3), ("disk full", 1),
            ("connections ended", 3), ("resets", 3), ("reload", 3), ("restart", 2), ("roll-out", 2),
            ("pooler killed", 1 if self.options.pooler else 0), ("standby promoted", 1),
        ]
        kind = chance.choices([one for one, _ in kinds], [weight for _, weight in kinds])[0]
        threading.Thread(target=self.perform, args=(kind, replica, chance.random()), daemon=True).start()

    def perform(self, kind, replica, chance):
        begin = self.authority.now()
        if kind.endswith("past the mark") and any(r.during(PAST, begin, begin) for r in self.replicas):
            kind = "stop briefly"
        self.timeline.append((begin, kind, replica.name))
        self.say(kind, replica.name)

        def note(kind, seconds):
            replica.note(kind, begin, seconds)

        if kind == "kill":
            note("kill", 1.5)
            replica.restart(in_order=False)
        elif kind.startswith("stop"):
            length = 34 if "past" in kind else 0.5 + 3 * chance
            note(kind, length + 1)
            replica.signal(signal.SIGSTOP)
            self.stopping.wait(length)
            replica.signal(signal.SIGCONT)
        elif kind == "cut off past the mark":
            note(kind, 41)
            replica.filter(self.database.all_ports, "drop")
            self.stopping.wait(40)
            replica.filter()
        elif kind == "connections ended":
            self.database.end_connections(None if self.options.pooler else replica.address)
        elif kind == "resets":
            note(kind, 4)
            replica.filter(self.database.all_ports, "reject with tcp reset")
            self.stopping.wait(3)
            replica.filter()
        elif kind == "reload":
            replica.reload()
        elif kind == "restart":
            note("stop briefly", 12)
            replica.restart()
        elif kind == "roll-out":
            self.roll_out(chance)
        elif kind == "database killed":
            self.database.kill_and_restart()
        elif kind == "standby promoted":
            self.database.promote()
        elif kind == "pooler killed":
            self.database.restart_pooler()
        elif kind.startswith("partition"):
            length = 1 + 4 * chance
            port = self.database.all_ports if "database" in kind else self.port
            note(kind, length + 1)
            replica.filter(port, "drop")
            self.stopping.wait(length)
            replica.filter(port, "reject with tcp reset")
            self.stopping.wait(0.3)
            replica.filter()
        elif kind == "answers lost":
            self.authority.lose = 0.3
            time.sleep(1)
            self.authority.lose = 0
        elif kind == "disk full":
            self.database.fill_disk(1 + 2 * chance)

    def roll_out(self, chance):
        """Another client_id or token endpoint, at one replica after the other; every second time it is taken back."""
        if not self.rolling.acquire(blocking=False):
            return
        before, rolled = self.variant, []
        after = VARIANTS[(VARIANTS.index(before) + 1 + int(chance * 2)) % len(VARIANTS)]

        def change(replica, variant):
            rolled.append(replica)
            replica.reload(variant)
            if len(rolled) % 2:
                replica.note("stop briefly", self.authority.now(), 12)
                replica.restart()
            self.stopping.wait(2)

        for replica in self.replicas[:len(self.replicas) // 2 + 1]:
            change(replica, after)
        is_finished = chance < 0.5
        for replica in self.replicas[len(self.replicas) // 2 + 1:] if is_finished else list(rolled):
            change(replica, after if is_finished else before)
        self.variant = after if is_finished else before
        self.timeline.append((self.authority.now(), "roll-out finished" if is_finished else "roll-out taken back", ""))
        self.rolling.release()

    # MARK: Run

    def run(self):
        chance = random.Random(self.options.seed)
        threads = [threading.Thread(target=self.drive, args=(one,), daemon=True) for one in self.replicas]
        threads.append(threading.Thread(target=self.watch_revisions, daemon=True))
        for thread in threads:
            thread.start()
        end = time.monotonic() + self.options.seconds
        while time.monotonic() < end:
            time.sleep(1)
            self.fault(chance)
        # Stopped processes go on, networks are joined again, and the fleet comes to rest.
        self.stopping.set()
        time.sleep(2)
        for replica in self.replicas:
            replica.signal(signal.SIGCONT)
            replica.filter()
            with replica.replacing:
                if replica.process.poll() is not None:
                    replica.start()
        self.database.heal()
        self.settled_at = self.authority.now()
        deadline = time.monotonic() + 60
        waiting = set(self.clients)
        while waiting and time.monotonic() < deadline:
            waiting = {one for one in waiting if self.ask(self.replicas[0], one) != 200}
            time.sleep(0.5)
        self.never_back = sorted(waiting)
        # A fresh process has only the database: it refreshes with the stored token.
        for replica in self.replicas:
            replica.kill()
        time.sleep(0.5)
        self.fresh_at = self.authority.now()
        last = self.replicas[-1]
        last.start()
        time.sleep(self.options.life + 1)
        deadline = time.monotonic() + 30
        waiting = set(self.clients)
        while waiting and time.monotonic() < deadline:
            waiting = {one for one in waiting if self.ask(last, one) != 200}
            time.sleep(0.2)
        self.not_in_database = sorted(waiting)
        last.kill()

    def close(self):
        for replica in getattr(self, "replicas", []):
            if replica.process and replica.process.poll() is None:
                replica.signal(signal.SIGCONT)
                replica.kill()
            sh("ip", "netns", "del", replica.space, check=False)
        if hasattr(self, "database"):
            self.database.stop()
        if self.options.keep:
            print("kept:", self.folder)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    # MARK: What the log says

    def verdict(self):
        log = self.authority.log
        by_kind = collections.Counter(event[1] for event in log)
        print("\nfaults:", dict(collections.Counter(kind for _, kind, _ in self.timeline)))
        print("endpoint and upstream:", dict(by_kind))
        print("requests of programs:", {f"{where}: {status}": count for (where, status), count in sorted(self.results.items())})
        failures = []

        def judge(promise, found, detail=""):
            print(("kept    " if not found else "BROKEN  ") + promise + (f": {detail}" if found else ""))
            if found:
                failures.append(promise)

        wrong = [event for event in log if event[1] == "wrong"]
        judge("no request upstream carried a token past its life, or another's", wrong, wrong[:5])
        judge("revisions grow", self.backwards, self.backwards[:5])

        unexplained, lost, single, lost_at_the_end = [], 0, 0, set()
        for when, _, client, replica, detail in (event for event in log if event[1] == "reuse"):
            spender, spent_at = detail.split(" spent by ")[1].split(" at ")
            spender = next(one for one in self.replicas if one.name == spender)
            was_lost, spent_at = spent_at.endswith("lost"), float(spent_at.split()[0])
            # The one that spent it did not live, or was away until its mark had ended.
            was_killed = any(spent_at - 0.1 < when < spent_at + 5 for when in spender.kills)
            if when > self.fresh_at and was_killed:
                lost_at_the_end.add(client)
            if was_killed or spender.during(PAST, spent_at - 2.2, spent_at + 5):
                lost += 1
            elif was_lost:
                single += 1
            elif spender.during(("partition from the endpoint",), spent_at - 4.5, spent_at + 4.5):
                lost += 1
            else:
                unexplained.append((round(when, 2), client, replica, detail))
        judge(
            "no refresh token twice, but after an answer that was lost, or a holder that was killed, or stopped or cut off "
            "past its mark", unexplained, unexplained[:8])
        print(f"        families lost: {by_kind['reuse']}, of them {lost} by such holders, {single} by one lost answer; "
              f"answers lost and had again by the same holder: {by_kind['again']} of {by_kind['lost']}")
        foreign = [event for event in log if event[1] == "foreign"]
        judge("no refresh token at an endpoint or for a client_id that it was not issued by and for", foreign, foreign[:5])
        judge("every client has a token again afterwards", self.never_back, self.never_back)
        fresh = [event for event in log if event[0] > self.fresh_at and event[1] in ("reuse", "dead", "unknown", "foreign")
                 and event[2] not in lost_at_the_end]
        missing = sorted(set(self.not_in_database) - {client.split(".")[0] for client in lost_at_the_end})
        judge("what was rotated is in the database: a fresh process goes on with it, but for a holder that the end killed",
              missing or fresh, (missing, fresh[:5]))
        asked = sum(by_kind[kind] for kind in ("rotated", "lost", "again", "reuse", "dead", "unknown", "foreign"))
        # An answer that was lost has to be asked for again.
        least = by_kind["rotated"] + by_kind["lost"] + by_kind["again"]
        ratio = asked / max(1, least)
        # When a sign-in is lost, each replica tries the refresh token of the configuration once.
        seeds = sum(1 for event in log if event[1] in ("dead", "unknown") and event[4].startswith("seed-"))
        spare = (asked - by_kind["reuse"] - seeds) / max(1, least)
        judge("token requests at most 1.05 times the least, without those for lost sign-ins", spare > 1.05, f"{spare:.3f}")
        print(f"        {asked} token requests, {by_kind['rotated'] + by_kind['lost']} rotations and {by_kind['again']} answers "
              f"that had been lost: {ratio:.3f}; {by_kind['reuse'] + seeds} of them for lost sign-ins: {spare:.3f} without")
        return 1 if failures else 0


def enter_namespaces():
    """Runs this program again in a network of its own, whose processes end with it."""
    if os.environ.get("HEIMDALLR_FLEET_INSIDE") != "1":
        os.environ["HEIMDALLR_FLEET_INSIDE"] = "1"
        os.execvp("unshare", ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                              sys.executable, *sys.argv])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--replicas", type=int, default=5)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--life", type=int, default=3)
    parser.add_argument("--grace", type=float, default=0, help="of the endpoint, for a lost answer, in seconds")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    parser.add_argument("--executable", default=os.environ.get("HEIMDALLR_PROXY_EXECUTABLE"))
    parser.add_argument("--pooler", choices=("session", "transaction"), help="replicas reach the database through pgbouncer")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--keep", action="store_true", help="leave the folder with logs")
    options = parser.parse_args()
    enter_namespaces()
    sh("mount", "-t", "tmpfs", "tmpfs", "/run/netns", check=False) if os.path.isdir("/run/netns") else sh(
        "mkdir", "-p", "/run/netns")
    print("seed", options.seed, flush=True)
    random.seed(options.seed)
    fleet = Fleet(options)
    try:
        fleet.build()
        fleet.run()
        return fleet.verdict()
    finally:
        fleet.close()


if __name__ == "__main__":
    sys.exit(main())
