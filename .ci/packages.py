"""Builds the Debian package and the image from a release, and looks at them: `.ci/packages.py EXECUTABLE`.

- lintian has nothing to say of the package; its executable has full RELRO; its configuration and its examples are valid.
- The image starts from environment variables alone, as a user without rights on a read-only root, and a request through it
  arrives, over TLS, with a token. Its HEALTHCHECK says so. deploy/Dockerfile says the same of it.

As root: mounting and chroot want it.
"""

import contextlib
import datetime
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOKEN = "token-of-this-run"
faults = []


def check(condition, what, detail=""):
    print(f"{'ok' if condition else 'FAULT'}: {what}", flush=True)
    if not condition:
        faults.append(what)
        print(detail, flush=True)


def run(*command, **options):
    return subprocess.run(
        [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=60, **options)


def install(*packages):
    subprocess.run(["bash", "-c", '. deploy/install.sh && install_packages "$@"', "bash", *packages], cwd=ROOT, check=True)


def full_relro(executable):
    """Whether the table of function addresses is read-only once the program runs: ld(1), -z relro and -z now."""
    read = run("readelf", "--wide", "--dynamic", "--segments", executable)
    now = re.search(r"\(FLAGS\).*\bBIND_NOW\b|\(FLAGS_1\).*\bNOW\b", read.stdout)
    return now and re.search(r"\bGNU_RELRO\b", read.stdout), "full RELRO", read.stdout


def system_libraries_only(executable):
    """Whether the dynamic linker looks in the system's folders alone: ld.so(8), DT_RUNPATH."""
    read = run("readelf", "--wide", "--dynamic", executable)
    return not re.search(r"\((RPATH|RUNPATH)\)", read.stdout), "libraries from the system's folders only", read.stdout


def same_bytes(what, first, second):
    check(pathlib.Path(first).read_bytes() == pathlib.Path(second).read_bytes(), f"{what} is the same when it is built again")


def build_deb(release, folder):
    """The package's path; `None`: it was not built."""
    folder.mkdir()
    built = subprocess.run(
        [ROOT / "deploy/build-deb", "--release", release, "--output", folder], stdout=subprocess.PIPE, text=True)
    check(built.returncode == 0, "deploy/build-deb")
    return None if built.returncode else built.stdout.strip().splitlines()[-1]


def debian_package(release, folder):
    package, again = build_deb(release, folder / "first"), build_deb(release, folder / "second")
    if not package or not again:
        return
    same_bytes("the package", package, again)
    linted = run("lintian", "--allow-root", "--fail-on", "error,warning", package)
    check(linted.returncode == 0, "lintian", linted.stdout)
    unpacked = folder / "unpacked"
    run("dpkg-deb", "-x", package, unpacked)
    doc = unpacked / "usr/share/doc/heimdallr-proxy"
    for name in ("fleet.md.gz", "tracing.md.gz", "examples/transparent/redirect", "examples/kubernetes/sidecar/cronjob.yaml"):
        check((doc / name).is_file(), f"the package has {name}")
    check(*full_relro(unpacked / "usr/bin/heimdallr-proxy"))
    check(*system_libraries_only(unpacked / "usr/bin/heimdallr-proxy"))
    secrets = folder / "secrets"
    secrets.mkdir()
    for name, text in {"items": "secret", "store-key": "k" * 32}.items():
        (secrets / name).write_text(text)
        (secrets / name).chmod(0o600)
    files = [unpacked / "etc/heimdallr-proxy/config.yaml"]
    files += (ROOT / "deploy/debian/examples").glob("*.yaml")
    for file in files:
        said = run(release, "check", "--config", file, env={**os.environ, "CREDENTIALS_DIRECTORY": str(secrets)})
        check(said.returncode == 0, f"check --config {file.name}", said.stdout)
    # Without the comment signs it is what the comments promise.
    text = files[0].read_text()
    begin = text.index("#clients:")
    whole = folder / "config.yaml"
    whole.write_text(text[:begin] + re.sub(r"(?m)^#", "", text[begin:]))
    said = run(release, "check", "--config", whole, env={**os.environ, "CREDENTIALS_DIRECTORY": str(secrets)})
    check(said.returncode == 0 and "api.example.com" in said.stdout, "the example inside config.yaml", said.stdout)


class Upstream(http.server.BaseHTTPRequestHandler):
    """A token endpoint and an API that says what it received."""

    def answer(self, body, type):
        self.send_response(200)
        self.send_header("Content-Type", type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        value = {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600}
        self.answer(json.dumps(value).encode(), "application/json")

    def do_GET(self):
        self.answer((self.headers["Authorization"] or "no token").encode(), "text/plain")

    def log_message(self, *_):
        pass


def serve(context=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def certificate(folder):
    run(
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", "/CN=api.test", "-addext", "subjectAltName=DNS:api.test", "-keyout", folder / "key.pem",
        "-out", folder / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    return context


def unpack(layout, folder):
    """As the specification says: each digest is looked at."""

    def blob(descriptor):
        content = (layout / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
        assert hashlib.sha256(content).hexdigest() == descriptor["digest"].split(":")[1]
        assert len(content) == descriptor["size"]
        return content

    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads(blob(index["manifests"][0]))
    config = json.loads(blob(manifest["config"]))
    for layer in manifest["layers"]:
        blob(layer)
        with tarfile.open(layout / "blobs" / layer["digest"].replace(":", "/")) as tar:
            tar.extractall(folder, filter="tar")
    return config


def image(release, folder):
    source = "https://source.example.org/heimdallr-proxy"
    for output in (folder, folder / "again"):
        built = run(ROOT / "deploy/build-image", "--release", release, "--output", output, "--source", source)
        check(built.returncode == 0, "deploy/build-image " + built.stdout.strip().splitlines()[-1], built.stdout)
        if built.returncode:
            return
    (file,) = folder.glob("*.oci.tar")
    same_bytes("the image", file, folder / "again" / file.name)
    inspected = run("skopeo", "inspect", f"oci:{folder}/oci")
    check(inspected.returncode == 0, "skopeo inspect", inspected.stdout)
    root = folder / "root"
    config = unpack(folder / "oci", root)
    same_as_dockerfile(config["config"])
    labels = {key.removeprefix("org.opencontainers.image."): value for key, value in config["config"]["Labels"].items()}
    head = run("git", "-C", ROOT, "log", "-1", "--format=%H").stdout.strip()
    version = run(release, "--version").stdout.split()[-1]
    wanted = {"source": source, "revision": head, "version": version, "licenses": "Apache-2.0"}
    check(wanted.items() <= labels.items(), "the image's labels", labels)
    commit = int(run("git", "-C", ROOT, "log", "-1", "--format=%ct").stdout)
    created = datetime.datetime.fromtimestamp(commit, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    check(labels["created"] == created, "the image has the time of the commit, as the package has", labels)
    (root / "etc/hosts").write_text("127.0.0.1 localhost api.test\n")
    context = certificate(folder)
    shutil.copy(folder / "ca.pem", root / "etc/heimdallr-proxy/ca.pem")
    (root / "etc/heimdallr-proxy/ca.pem").chmod(0o644)
    port, admin = free_port(), free_port()
    environment = {
        "HEIMDALLR_UPSTREAM": f"https://api.test:{serve(context)}",
        "HEIMDALLR_UPSTREAM_CA_FILE": "/etc/heimdallr-proxy/ca.pem",
        "HEIMDALLR_TOKEN_ENDPOINT": f"http://127.0.0.1:{serve()}/token", "HEIMDALLR_ALLOW_PLAINTEXT": "true",
        "HEIMDALLR_CLIENT_ID": "x", "HEIMDALLR_CLIENT_SECRET": "y", "HEIMDALLR_LISTEN": f"127.0.0.1:{port}",
    }
    for entry in config["config"]["Env"]:
        name, value = entry.split("=", 1)
        environment[name] = value
    # Once as it comes, where nothing at all can be written, and once with the admin port, whose socket wants a place.
    started(root, config["config"], environment, port, writable=False)
    started(root, config["config"], environment | {"HEIMDALLR_ADMIN_LISTEN": f"127.0.0.1:{admin}"}, port, writable=True)


@contextlib.contextmanager
def container(root, config, environment, writable):
    """A read-only root, /proc, and /tmp where it is asked for; none of it is left behind."""
    places = "mount --bind $0 $0 && mount -o remount,bind,ro $0 && mount -t proc proc $0/proc"
    if writable:
        places += " && mount -t tmpfs -o mode=1777 tmpfs $0/tmp"
    enter = ["/usr/sbin/chroot", f"--userspec={config['User']}", str(root)]
    command = config["Entrypoint"] + config["Cmd"]
    process = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'{places} && exec "$@"', str(root), *enter, *command],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        # Before the executable runs, what it needs is not mounted yet.
        while process.poll() is None and pathlib.Path(f"/proc/{process.pid}/comm").read_text() != "heimdallr-proxy\n":
            time.sleep(0.05)
        yield process, lambda *words: run("nsenter", "--mount", f"--target={process.pid}", *enter, *words, env=environment)
    finally:
        process.kill()
        process.wait()


def started(root, config, environment, port, writable):
    what = "with an admin port" if writable else "on a root that nobody can write to"
    with container(root, config, environment, writable) as (process, inside):
        healthy = None
        for _ in range(100):
            healthy = inside(*config["Healthcheck"]["Test"][1:])
            if healthy.returncode == 0 or process.poll() is not None:
                break
            time.sleep(0.1)
        good = healthy.returncode == 0 and (not writable or healthy.stdout == "ready\n")
        check(good, f"the image is healthy, {what}", healthy.stdout)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://127.0.0.1:{port}"}))
        host = environment["HEIMDALLR_UPSTREAM"].removeprefix("https://")
        try:
            answer = opener.open(f"http://{host}/x", timeout=10).read().decode()
        except OSError as error:
            answer = f"{error}"
        check(answer == f"Bearer {TOKEN}", f"a request through it arrives over TLS with a token, {what}", answer)
        if process.poll() is not None:
            check(False, f"it stays, {what}", process.stdout.read())
            return
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        user = re.search(r"^Uid:\s+(\d+)", status, re.M)[1]
        check(user == "10001", f"it runs as 10001, {what}", status)
        process.terminate()
        check(process.wait(timeout=20) == 0, f"it ends with 0, {what}", process.stdout.read())


def same_as_dockerfile(config):
    """What the final stage of deploy/Dockerfile says, as the image's configuration says it."""
    text = re.sub(r"(?m)^#.*\n", "", (ROOT / "deploy/Dockerfile").read_text()).split("FROM scratch")[1]
    said = dict(line.split(" ", 1) for line in text.strip().splitlines())
    flags, test = said["HEALTHCHECK"].split(" CMD ")
    flags = dict(flag[2:].split("=") for flag in flags.split())
    health = config["Healthcheck"]
    check(
        json.loads(said["ENTRYPOINT"]) == config["Entrypoint"] and json.loads(said["CMD"]) == config["Cmd"]
        and said["USER"] == config["User"] and said["WORKDIR"] == config["WorkingDir"]
        and said["STOPSIGNAL"] == config["StopSignal"] and ["CMD", *json.loads(test)] == health["Test"]
        and {name: int(flags[name.lower()].rstrip("s")) * 10**9 for name in ("Interval", "Timeout")}
        == {name: health[name] for name in ("Interval", "Timeout")}
        and int(flags["start-period"].rstrip("s")) * 10**9 == health["StartPeriod"]
        and int(flags["retries"]) == health["Retries"],
        "deploy/Dockerfile and deploy/build-image say the same", f"{said}\n{config}")
    labels = re.findall(r'(?m)^LABEL (\S+)="([^"]*)"$', text)
    given = {f"org.opencontainers.image.{name}" for name in ("created", "revision", "source")}
    wanted = {name: value for name, value in config["Labels"].items() if name not in given}
    check(dict(labels) == wanted, "the labels of deploy/Dockerfile are those of deploy/build-image", f"{labels}\n{wanted}")


def main():
    if len(sys.argv) != 2 or os.geteuid() != 0:
        sys.exit("As root: .ci/packages.py EXECUTABLE")
    install("lintian=lintian", "skopeo=skopeo", "openssl=openssl", "unshare=util-linux", "nsenter=util-linux")
    release = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="heimdallr-proxy-packages.") as folder:
        folder = pathlib.Path(folder)
        (folder / "deb").mkdir()
        (folder / "image").mkdir()
        debian_package(release, folder / "deb")
        image(release, folder / "image")
    print(f"{len(faults)} faults")
    sys.exit(bool(faults))


main()
