"""A PostgreSQL with a synchronous standby, and pgbouncer before them: started, hurt and healed by the fleet's proof."""
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

BIN = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
USER = "nobody"


def user(*words):
    return ["setpriv", "--reuid", USER, "--regid", "nogroup", "--clear-groups", *[str(word) for word in words]]


class Database:
    def __init__(self, folder, host, pooler=None, max_connections=200, more=""):
        """`pooler`: pgbouncer's mode; `more`: lines of postgresql.conf."""
        self.host, self.mode, self.max_connections, self.more = host, pooler, max_connections, more
        self.ports = [5432, 5433]
        self.pooler_port = 6432
        self.folder = folder / "database"
        self.folder.mkdir()
        # A separate file system, which can be full.
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400m,mode=755", "tmpfs", self.folder], check=True)
        shutil.chown(self.folder, USER, "nogroup")
        self.roots = [self.folder / "one", self.folder / "other"]
        self.primary = 0
        self.processes = [None, None]
        self.pooler = None
        self.lock = threading.RLock()
        self.last_promotion = time.monotonic()

    @property
    def port(self):
        return self.pooler_port if self.mode else self.ports[0]

    @property
    def all_ports(self):
        """For a packet filter: another server may be the primary by now."""
        return f"{{ {self.ports[0]}, {self.ports[1]}, {self.pooler_port} }}"

    @property
    def connection(self):
        if self.mode:
            return f"host={self.host} port={self.pooler_port} dbname=postgres user=proxy password=s3cret sslmode=disable"
        return (f"host={self.host},{self.host} port={self.ports[0]},{self.ports[1]} dbname=postgres user=proxy "
                "password=s3cret sslmode=disable target_session_attrs=read-write")

    # MARK: Start and stop

    def start(self):
        root = self.roots[0]
        subprocess.run(user(BIN / "initdb", "-D", root, "-U", "admin", "-A", "trust", "--no-sync"), check=True,
                       stdout=subprocess.DEVNULL, cwd="/")
        with open(root / "postgresql.conf", "a") as file:
            file.write(f"""
listen_addresses = '{self.host}'
unix_socket_directories = '{self.folder}'
max_connections = {self.max_connections}
shared_buffers = 16MB
max_wal_size = 96MB
min_wal_size = 32MB
wal_keep_size = 64MB
max_wal_senders = 4
hot_standby = on
log_min_messages = warning
tcp_keepalives_idle = 2
tcp_keepalives_interval = 1
tcp_keepalives_count = 2
tcp_user_timeout = 4000
wal_receiver_status_interval = 1
wal_retrieve_retry_interval = 200ms
restart_after_crash = on
{self.more}
""")
        (root / "pg_hba.conf").write_text(
            "local all all trust\nlocal replication all trust\nhost all all all scram-sha-256\n")
        self.launch(0)
        self.wait(0)
        self.sql(0, "CREATE ROLE proxy LOGIN PASSWORD 's3cret'")
        self.follow(1)
        self.synchronous(0)
        if self.mode:
            self.start_pooler()

    def launch(self, index):
        log = open(self.folder / f"log{index}", "ab")
        self.processes[index] = subprocess.Popen(
            user(BIN / "postgres", "-D", self.roots[index], "-p", self.ports[index]), stdout=log, stderr=log, cwd="/")
        log.close()

    def follow(self, index):
        """Makes `index` a standby of the other."""
        root = self.roots[index]
        shutil.rmtree(root, ignore_errors=True)
        subprocess.run(
            user(BIN / "pg_basebackup", "-D", root, "-h", self.folder, "-p", self.ports[1 - index], "-U", "admin", "-R",
                 "--no-sync", "-c", "fast", "-d", f"application_name=standby{index} host={self.folder} user=admin"),
            check=True, cwd="/", capture_output=True)
        self.launch(index)
        self.wait(index)

    def synchronous(self, index):
        self.sql(index, f"ALTER SYSTEM SET synchronous_standby_names = 'standby{1 - index}'")
        self.sql(index, "SELECT pg_reload_conf()")

    def wait(self, index, seconds=30):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.sql(index, "SELECT 1", check=False) == "1":
                return
            time.sleep(0.1)
        raise RuntimeError(f"PostgreSQL {index} does not start")

    def stop(self):
        for process in [*self.processes, self.pooler]:
            if process and process.poll() is None:
                process.send_signal(signal.SIGQUIT if process is not self.pooler else signal.SIGTERM)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
        subprocess.run(["umount", "-l", self.folder], check=False)

    # MARK: Asking

    def sql(self, index, text, check=True):
        done = subprocess.run(
            [BIN / "psql", "-XAtq", "-h", self.folder, "-p", str(self.ports[index]), "-U", "admin", "-d", "postgres", "-c", text],
            capture_output=True, text=True, timeout=30, cwd="/")
        if check and done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def make_tables(self, executable):
        script = subprocess.run([executable, "store", "init", "--sql"], check=True, capture_output=True, text=True).stdout
        done = subprocess.run(
            [BIN / "psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p", str(self.ports[0]), "-U", "admin", "-d", "postgres"],
            input=script, text=True, capture_output=True, cwd="/")
        if done.returncode:
            raise RuntimeError(done.stderr)
        self.sql(0, """
            GRANT USAGE ON SCHEMA heimdallr TO proxy;
            GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA heimdallr TO proxy;
            GRANT USAGE ON ALL SEQUENCES IN SCHEMA heimdallr TO proxy""")

    def revisions(self):
        try:
            rows = self.sql(self.primary, "SELECT client, revision FROM heimdallr.token", check=False)
        except subprocess.TimeoutExpired:
            return []
        pairs = [row.split("|") for row in rows.splitlines() if "|" in row]
        return [(client, int(revision)) for client, revision in pairs]

    # MARK: Hurting

    def end_connections(self, address):
        """Of one replica; `None`: of all, for behind a pooler they can't be told apart."""
        which = f"client_addr = '{address}'" if address else "usename = 'proxy'"
        try:
            self.sql(self.primary, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {which}", check=False)
        except subprocess.TimeoutExpired:
            pass

    def kill_and_restart(self):
        with self.lock:
            index = self.primary
            self.end(index)
            time.sleep(0.5)
            self.launch(index)
            self.wait(index)

    def end(self, index):
        """kill -9, of the server and all that it has started."""
        process = self.processes[index]
        children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
        process.kill()
        process.wait()
        for child in children:
            try:
                os.kill(int(child), signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.1)

    def promote(self):
        """The primary dies, its synchronous standby takes over, and what was the primary follows that."""
        with self.lock:
            if self.mode or time.monotonic() - self.last_promotion < 60:
                return
            old, new = self.primary, 1 - self.primary
            if self.sql(old, "SELECT sync_state FROM pg_stat_replication", check=False) != "sync":
                return
            self.last_promotion = time.monotonic()
            self.end(old)
            self.sql(new, "ALTER SYSTEM SET synchronous_standby_names = ''", check=False)
            self.sql(new, "SELECT pg_promote()")
            self.sql(new, "ALTER SYSTEM RESET synchronous_standby_names")
            self.sql(new, "ALTER SYSTEM SET synchronous_standby_names = ''")
            self.sql(new, "SELECT pg_reload_conf()")
            self.primary = new
            self.follow(old)
            self.synchronous(new)

    def fill_disk(self, seconds):
        with self.lock:
            ballast = self.folder / "ballast"
            try:
                with open(ballast, "wb") as file:
                    while True:
                        file.write(b"x" * (1 << 20))
                        file.flush()
            except OSError:
                pass
            time.sleep(seconds)
            ballast.unlink()
            self.heal()

    def heal(self):
        """Whatever has not survived is started again."""
        with self.lock:
            (self.folder / "ballast").unlink(missing_ok=True)
            for index in (self.primary, 1 - self.primary):
                if self.processes[index].poll() is not None:
                    self.launch(index)
                self.wait(index, 60)

    # MARK: The pooler

    def start_pooler(self):
        folder = self.folder / "pooler"
        if not folder.exists():
            folder.mkdir()
            (folder / "users").write_text('"proxy" "s3cret"\n')
            (folder / "ini").write_text(f"""
[databases]
postgres = host={self.host} port={self.ports[0]} dbname=postgres
[pgbouncer]
listen_addr = {self.host}
listen_port = {self.pooler_port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {folder}/users
pool_mode = {self.mode}
default_pool_size = 60
server_login_retry = 1
logfile = {folder}/log
pidfile = {folder}/pid
""")
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, USER, "nogroup")
        self.pooler = subprocess.Popen(
            user("/usr/sbin/pgbouncer", "-q", folder / "ini"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")

    def restart_pooler(self):
        with self.lock:
            self.pooler.kill()
            self.pooler.wait()
            time.sleep(0.3)
            self.start_pooler()
