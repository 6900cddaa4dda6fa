#!/usr/bin/env python3
"""Eight replicas on one PostgreSQL, which has the outages that databases have, each at the worst moment: a replica has spent a
refresh token, and its successor is not saved. No refresh token may be used twice.

    Tests/Fleet/run outages [--rounds 20] [--kinds read-only,locked,…] [--replicas 8] [--clients 6] [--life 3] [--keep]

A token endpoint begins the outage between the rotation and its answer. The outage outlasts the mark. Exit code 1 if a refresh
token was used twice without a reason that docs/fleet.md names. Needs root, as fleet.py does.
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time

from database import BIN
from fleet import Fleet, enter_namespaces
from replica import sh

# Longer than a mark, which stands for 30 s.
LENGTH = 33


class Outages(Fleet):
    def __init__(self, options):
        super().__init__(options)
        self.counts = {}

    def drive(self, replica):
        chance = random.Random(f"{self.options.seed}-{replica.number}")
        while not self.stopping.is_set():
            if replica.process and replica.process.poll() is None:
                self.ask(replica, chance.choice(self.clients))
            time.sleep(chance.uniform(0.05, 0.2))

    # MARK: Outages. Each returns a function that decides whether a second use has a documented reason.

    def sql(self, text):
        return self.database.sql(self.database.primary, text)

    def strike(self, begin):
        """Calls `begin` between the next rotation and its answer. Returns the time of it."""
        done, times = threading.Event(), []

        def hook():
            begin()
            times.append(self.authority.now())
            done.set()
        self.authority.strike = hook
        if not done.wait(30):
            raise RuntimeError("no token was rotated")
        return times[0]

    def read_only(self):
        """A disk that is nearly full, an administrator: writes are refused, and connections live on."""
        def change(word):
            self.sql(f"ALTER SYSTEM SET default_transaction_read_only = {word}")
            self.sql("SELECT pg_reload_conf()")
            time.sleep(0.1)
        self.strike(lambda: change("on"))
        time.sleep(LENGTH)
        change("off")
        return lambda spent_at, when: None

    def locked(self):
        """A backup, a migration."""
        lock = []

        def begin():
            lock.append(subprocess.Popen(
                [BIN / "psql", "-XAtq", "-h", self.database.folder, "-p", str(self.database.ports[self.database.primary]), "-U",
                 "admin", "-d", "postgres", "-c", "BEGIN", "-c",
                 f"LOCK TABLE heimdallr.token IN {random.choice(('ACCESS EXCLUSIVE', 'EXCLUSIVE'))} MODE", "-c", "SELECT 1", "-c",
                 f"SELECT pg_sleep({LENGTH})", "-c", "COMMIT"], stdout=subprocess.PIPE, cwd="/"))
            lock[0].stdout.read(1)
        self.strike(begin)
        lock[0].wait()
        return lambda spent_at, when: None

    def late(self):
        """Processes of the server stand still: their statements run after they were given up."""
        processes = []

        def begin():
            processes.extend(self.sql("SELECT pid FROM pg_stat_activity WHERE usename = 'proxy'").split())
            for process in processes:
                os.kill(int(process), signal.SIGSTOP)
        self.strike(begin)
        time.sleep(LENGTH)
        for process in processes:
            try:
                os.kill(int(process), signal.SIGCONT)
            except ProcessLookupError:
                pass
        return lambda spent_at, when: None

    def commits(self):
        """The synchronous standby is away: commits hang."""
        database = self.database
        standby = 1 - database.primary

        def begin():
            database.end(standby)
        self.strike(begin)
        time.sleep(LENGTH)
        database.launch(standby)
        database.wait(standby)
        return lambda spent_at, when: None

    def away(self):
        """The server is killed, and started again."""
        database = self.database
        self.strike(lambda: database.end(database.primary))
        time.sleep(LENGTH)
        database.launch(database.primary)
        database.wait(database.primary)
        return lambda spent_at, when: None

    def detach(self):
        """The standby gets no more commits, and nobody waits for it."""
        database = self.database
        self.sql("ALTER SYSTEM SET synchronous_standby_names = ''")
        self.sql("SELECT pg_reload_conf()")
        standby = 1 - database.primary
        database.sql(standby, "ALTER SYSTEM SET primary_conninfo = ''")
        database.sql(standby, "SELECT pg_reload_conf()")
        while database.sql(standby, "SELECT count(*) FROM pg_stat_wal_receiver") != "0":
            time.sleep(0.05)
        return standby

    def promote_standby(self, standby):
        self.database.sql(standby, "SELECT pg_promote()")
        self.database.primary = standby

    def follow_again(self):
        database = self.database
        database.sql(database.primary, "ALTER SYSTEM RESET primary_conninfo")
        database.sql(database.primary, "SELECT pg_reload_conf()")
        database.follow(1 - database.primary)
        database.synchronous(database.primary)

    def forgets(self):
        """The primary dies, and its asynchronous standby lacks the last commits. A replica starts just then."""
        database, last = self.database, self.replicas[-1]
        last.kill()
        standby = self.detach()
        time.sleep(self.options.life + 1)
        at = self.strike(lambda: database.end(database.primary))
        self.promote_standby(standby)
        last.start()
        time.sleep(self.options.life + 12)
        self.follow_again()
        # A mark that was forgotten with the primary, while its owner's request was under way.
        return lambda spent_at, when: "forgotten mark" if at - 2.5 < spent_at <= at + 2.5 else None

    def split(self):
        """A standby without the last commits is promoted, and the former primary accepts writes for another second."""
        database, half = self.database, self.replicas[::2]
        standby = self.detach()
        time.sleep(1)
        former = database.primary
        began = self.authority.now()
        self.promote_standby(standby)
        for replica in half:
            replica.filter(database.ports[former], "reject with tcp reset")
        time.sleep(1)
        at = self.authority.now()
        database.end(former)
        for replica in half:
            replica.filter()
        time.sleep(self.options.life + 12)
        self.follow_again()
        return lambda spent_at, when: "two servers" if began - 2.5 < spent_at <= at + 2.5 else None

    KINDS = {
        "read-only": read_only, "locked": locked, "late": late, "commits": commits, "away": away, "forgets": forgets,
        "split": split,
    }

    # MARK: Rounds

    def settle(self):
        deadline = time.monotonic() + 90
        waiting = [(replica, client) for replica in self.replicas for client in self.clients]
        while waiting and time.monotonic() < deadline:
            waiting = [(replica, client) for replica, client in waiting if self.ask(replica, client) != 200]
            time.sleep(0.2)
        return waiting

    def round(self, kind):
        with self.authority.lock:
            begin = len(self.authority.log)
        reason = self.KINDS[kind](self)
        waiting = self.settle()
        time.sleep(self.options.life)
        with self.authority.lock:
            reuses = [event for event in self.authority.log[begin:] if event[1] == "reuse"]
            rotations = sum(1 for event in self.authority.log[begin:] if event[1] == "rotated")
        count = self.counts.setdefault(kind, {"rounds": 0, "rotations": 0, "explained": 0, "twice": [], "away": 0})
        count["rounds"] += 1
        count["rotations"] += rotations
        count["away"] += len(waiting)
        for when, _, client, replica, detail in reuses:
            spent_at = float(detail.split(" at ")[1].split()[0])
            why = reason(spent_at, when)
            if why:
                count["explained"] += 1
            else:
                count["twice"].append(f"{when:.2f} {client} by {replica}, {detail}")
        print(f"{self.authority.now():7.1f} {kind}: {rotations} rotations, {len(reuses)} used twice, "
              f"{len(waiting)} without a token", flush=True)

    def run(self):
        for replica in self.replicas:
            threading.Thread(target=self.drive, args=(replica,), daemon=True).start()
        self.settle()
        for number in range(self.options.rounds):
            for kind in self.options.kinds.split(","):
                self.round(kind)
        self.stopping.set()

    def verdict(self):
        failed = False
        for kind, count in self.counts.items():
            bad = bool(count["twice"] or count["away"])
            failed = failed or bad
            print(f"{'BROKEN ' if bad else 'kept   '} {kind}: {count['rounds']} rounds, {count['rotations']} rotations, "
                  f"{len(count['twice'])} refresh tokens used twice, {count['explained']} for a documented reason"
                  + "".join(f"\n        {line}" for line in count["twice"][:8]))
        return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--kinds", default=",".join(Outages.KINDS))
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--life", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    parser.add_argument("--executable", default=os.environ.get("HEIMDALLR_PROXY_EXECUTABLE"))
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--keep", action="store_true", help="leave the folder with logs")
    options = parser.parse_args()
    options.grace, options.pooler = 0, None
    enter_namespaces()
    sh("mount", "-t", "tmpfs", "tmpfs", "/run/netns", check=False) if os.path.isdir("/run/netns") else sh(
        "mkdir", "-p", "/run/netns")
    random.seed(options.seed)
    outages = Outages(options)
    try:
        outages.build()
        outages.run()
        return outages.verdict()
    finally:
        outages.close()


if __name__ == "__main__":
    sys.exit(main())
