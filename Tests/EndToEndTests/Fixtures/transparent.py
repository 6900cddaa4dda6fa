"""Transparent redirection in network namespaces: programs that know nothing of a proxy, the proxy beside them, and an
"outside" behind a virtual cable. Run in fresh network and mount namespaces; prints what happened as one JSON object.

Usage: unshare --net --mount transparent.py PROXY REDIRECT TOOL FOLDER
"""
import glob, http.client, http.server, json, os, shutil, socket, ssl, subprocess, sys, threading, time
import urllib.error, urllib.request

proxy, redirect, tool, folder = sys.argv[1:]
OUTSIDE, PROXY_USER, PROGRAM_USER = "198.51.100.9", 64123, 64124


class Outside(http.server.BaseHTTPRequestHandler):
    """Token endpoint and API in one; says what it got."""
    seen = []

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/token":
            answer = {"access_token": "outside-token", "token_type": "Bearer", "expires_in": 3600}
        else:
            answer = {
                "host": self.headers["Host"], "path": self.path, "token": self.headers["Authorization"],
                "via": self.headers["Via"], "body": body.decode()}
            print(json.dumps(answer), flush=True)
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


class DualStack(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6


def echo(port):
    """Sends each datagram back."""
    server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    server.bind(("::", port))
    while True:
        server.sendto(*server.recvfrom(2048))


if proxy == "outside":
    # In the other namespace, once the cable is there.
    secure = DualStack(("::", 443), Outside)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/outside.pem")
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    threading.Thread(target=secure.serve_forever, daemon=True).start()
    for port in (443, 444):
        threading.Thread(target=echo, args=(port,), daemon=True).start()
    DualStack(("::", 80), Outside).serve_forever()


def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


def until(what, condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise TimeoutError(what)


def listens(host, port):
    try:
        socket.create_connection((host, port), timeout=1).close()
        return True
    except OSError:
        return False


def as_user(user, *command):
    become = [] if proxy == "inside" else ["setpriv", f"--reuid={user}", "--clear-groups"]
    return subprocess.run([*become, *command], capture_output=True, text=True, timeout=30)


def program(url, user=PROGRAM_USER, data=None):
    """An unmodified program: Python's urllib, told of nothing."""
    code = (
        "import sys, urllib.request, urllib.error\n"
        "try: answer = urllib.request.urlopen(sys.argv[1], data=sys.argv[2].encode() or None, timeout=20)\n"
        "except urllib.error.HTTPError as error: answer = error\n"
        "print(answer.status); print(answer.read().decode())\n")
    result = as_user(user, "/usr/bin/python3", "-c", code, url, data or "")
    lines = result.stdout.split("\n", 1)
    return {"status": int(lines[0]), "answer": json.loads(lines[1])} if len(lines) == 2 else {"error": result.stderr}


def trust(roots):
    """The path of certificates. Inside an enclosure, `exec` has set that of the proxy's roots."""
    return os.environ["NODE_EXTRA_CA_CERTS"] if proxy == "inside" and roots == "roots" else f"{folder}/{roots}.pem"


def curl(url, roots, *options, user=PROGRAM_USER):
    """An unmodified curl: its exit code, and what the outside saw."""
    result = as_user(user, "curl", "-sS", "--max-time", "20", "--cacert", trust(roots), *options, url)
    return {"exit": result.returncode, "seen": json.loads(result.stdout) if result.stdout else None}


def datagram(port, user=PROGRAM_USER, host=OUTSIDE):
    """What a datagram of this user comes to, as the first one of HTTP/3: the answer, or `refused`."""
    code = (
        "import socket, sys\n"
        "host, port = sys.argv[1], int(sys.argv[2])\n"
        "one = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET, socket.SOCK_DGRAM)\n"
        "one.settimeout(20)\n"
        "try: one.connect((host, port)); one.send(b'answer'); print(one.recv(2048).decode())\n"
        "except TimeoutError: print('nothing')\n"
        "except OSError: print('refused')\n")
    return as_user(user, "/usr/bin/python3", "-c", code, host, str(port)).stdout.strip()


def nghttp(url):
    """A program that offers HTTP/2 alone: what the outside saw."""
    return json.loads(as_user(PROGRAM_USER, "nghttp", "-y", url).stdout)


def piecemeal(way):
    """TLS whose ClientHello comes byte by byte, or in two records."""
    connection = socket.create_connection((OUTSIDE, 443), timeout=20)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context(cafile=trust("roots"))
    tls = context.wrap_bio(incoming, outgoing, server_hostname="safe.example.test")

    def go(step):
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                connection.sendall(outgoing.read())
                incoming.write(connection.recv(65536))

    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        hello = outgoing.read()
    if way == "records":
        hello = b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in (hello[5:70], hello[70:]))
    for byte in hello:
        connection.sendall(bytes([byte]))
    go(tls.do_handshake)
    tls.write(f"GET /{way} HTTP/1.0\r\nHost: safe.example.test\r\n\r\n".encode())
    connection.sendall(outgoing.read())
    answer = b"".join(iter(lambda: go(lambda: tls.read(65536)), b""))
    return json.loads(answer.split(b"\r\n\r\n")[1])


# The cases that redirected programs and enclosed ones share.


def plain_cases(six):
    elsewhere = as_user(
        PROGRAM_USER, "curl", "-sS", "--resolve", "api.example.test:80:198.51.100.77", "http://api.example.test/elsewhere")
    return {
        "program": program("http://api.example.test/v1?x=1", data="hello"), "elsewhere": json.loads(elsewhere.stdout),
        "unknown": program("http://unknown.example.test/"),
        "six": program("http://six.example.test/six") if six else None}


def listed_cases(six):
    """With one listed tunnel."""
    # A listed tunnel is dialled by its name, any other by the address that the program dialled.
    elsewhere = ["--resolve", "tunnel.example.test:443:198.51.100.77"]
    return {
        "python": program("https://safe.example.test/python")["answer"],
        "curl": curl("https://safe.example.test/curl", "roots"), "h2": nghttp("https://safe.example.test/h2"),
        "six": curl("https://safe6.example.test/six", "roots") if six else None,
        "bytes": piecemeal("bytes"), "records": piecemeal("records"),
        "tunnel": curl("https://tunnel.example.test/tunnel", "certificate"),
        "elsewhere": curl("https://tunnel.example.test/elsewhere", "certificate", *elsewhere),
        "unlisted": curl("https://any.example.test/unlisted", "certificate"),
        "listed": curl("https://listed.example.test/listed", "certificate"),
        "nameless": curl(f"https://{OUTSIDE}/nameless", "certificate")}


def any_cases(six):
    """With tunnels to any host."""
    ghost = ["--resolve", f"ghost.example.test:443:{OUTSIDE}"]
    return {
        "any": curl("https://any.example.test/any", "certificate"),
        "ghost": curl("https://ghost.example.test/ghost", "certificate", *ghost),
        "any six": curl("https://any6.example.test/any", "certificate") if six else None}


CASES = {"plain": plain_cases, "listed": listed_cases, "any": any_cases}
if proxy == "inside":
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    print(json.dumps(CASES[redirect](tool == "six")))
    sys.exit()


def enclosed(cases, config, six):
    """The cases as an enclosed program, which no rule redirects."""
    result = as_user(
        PROXY_USER, "env", f"XDG_RUNTIME_DIR={folder}/run-enclosed", proxy, "exec", "--enclose", "--serve", "--config",
        f"{folder}/{config}.yaml", "--", "/usr/bin/python3", __file__, "inside", cases, "six" if six else "", folder)
    if result.returncode:
        raise RuntimeError(f"{cases} of an enclosed program: {result.stderr}")
    return json.loads(result.stdout)


def configure(tunnels, port):
    with open(f"{folder}/secure.yaml", "w") as file:
        file.write(
            f"proxy: {{listen: ['127.0.0.1:{port}', '[::1]:{port}'], connect: tunnel, tunnels: {json.dumps(tunnels)},\n"
            f"  private_networks: ['198.51.100.0/24', '2001:db8::/32']}}\n"
            f"clients: {{api: {{token_endpoint: 'http://{OUTSIDE}/token', client_id: me, allow_plaintext: true}}}}\n"
            "upstreams:\n" + "".join(
                f"  - {{host: {name}.example.test, url: 'http://{OUTSIDE}', allow_plaintext: true, client: api,"
                f" intercept: {name != 'listed'}}}\n".replace("True", "true").replace("False", "false")
                for name in ("safe", "safe6", "listed")))


def secure(tunnels, port):
    """A proxy that opens the TLS of some hosts and tunnels others."""
    configure(tunnels, port)
    rules("up", "--user", str(PROXY_USER), "--from", "80,443", "--to", str(port))
    run_directory = f"{folder}/run{port}"
    os.mkdir(run_directory, 0o700)
    os.chown(run_directory, PROXY_USER, PROXY_USER)
    children.append(subprocess.Popen(
        ["setpriv", f"--reuid={PROXY_USER}", "--clear-groups", proxy, "serve", "--config", f"{folder}/secure.yaml"],
        stdout=open(f"{folder}/secure{port}.log", "w"), stderr=subprocess.STDOUT,
        env={**os.environ, "XDG_RUNTIME_DIR": run_directory}))
    until("the second proxy", lambda: listens("127.0.0.1", port))
    until("its roots", lambda: glob.glob(f"{run_directory}/**/roots.pem", recursive=True))
    shutil.copyfile(glob.glob(f"{run_directory}/**/roots.pem", recursive=True)[0], f"{folder}/roots.pem")
    os.chmod(f"{folder}/roots.pem", 0o644)


def rules(*arguments):
    run(redirect, *arguments, "--tool", tool)


results, children = {}, []
namespaces = subprocess.run(["unshare", "--user", "--net", "--mount", "true"], capture_output=True).returncode == 0
try:
    outside = subprocess.Popen(["unshare", "--net", "sleep", "300"])
    children.append(outside)
    until("the outside", lambda: os.readlink(f"/proc/{outside.pid}/ns/net") != os.readlink("/proc/self/ns/net"))
    enter = ["nsenter", f"--net=/proc/{outside.pid}/ns/net"]
    for command in (
        "ip link set lo up", "ip link add cable0 type veth peer name cable1",
        f"ip link set cable1 netns {outside.pid}", "ip addr add 198.51.100.1/24 dev cable0", "ip link set cable0 up",
        "ip route add default via 198.51.100.9"):
        run(*command.split())
    run(*enter, "ip", "link", "set", "lo", "up")
    run(*enter, "ip", "addr", "add", f"{OUTSIDE}/24", "dev", "cable1")
    run(*enter, "ip", "link", "set", "cable1", "up")
    six = os.path.exists("/proc/net/if_inet6") and all(
        subprocess.run(command.split(), capture_output=True).returncode == 0 for command in (
            "ip -6 addr add 2001:db8::1/64 dev cable0 nodad",
            " ".join(enter) + " ip -6 addr add 2001:db8::9/64 dev cable1 nodad"))
    names = [f"{name}.example.test" for name in ("tunnel", "any", "any6", "listed", "ghost")]
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=outside",
        "-addext", "subjectAltName=" + ",".join(f"DNS:{name}" for name in names), "-keyout", f"{folder}/key.pem",
        "-out", f"{folder}/certificate.pem")
    with open(f"{folder}/outside.pem", "w") as file:
        file.write(open(f"{folder}/certificate.pem").read() + open(f"{folder}/key.pem").read())
    server = subprocess.Popen(
        [*enter, "/usr/bin/python3", __file__, "outside", "", "", folder], stdout=open(f"{folder}/outside.log", "w"))
    children.append(server)
    until("the server outside", lambda: listens(OUTSIDE, 80))

    names = "\n".join(
        ["127.0.0.1 localhost"] + [f"{OUTSIDE} {name}.example.test" for name in (
            "api", "plain", "unknown", "safe", "tunnel", "any", "listed")]
        + ([f"2001:db8::9 {name}.example.test" for name in ("six", "safe6", "any6")] if six else []))
    with open(f"{folder}/hosts", "w") as file:
        file.write(names + "\n")
    run("mount", "--make-rprivate", "/")
    run("mount", "--bind", f"{folder}/hosts", "/etc/hosts")

    upstreams = "".join(
        f"  - {{host: {name}.example.test, url: 'http://{to}', allow_plaintext: true{client}}}\n"
        for name, to, client in (
            ("api", OUTSIDE, ", client: api"), ("six", OUTSIDE, ", client: api"), ("plain", "plain.example.test", "")))
    with open(f"{folder}/config.yaml", "w") as file:
        file.write(
            f"proxy: {{listen: {json.dumps(['127.0.0.1:8080', '[::1]:8080'][:2 if six else 1])}}}\n"
            f"clients: {{api: {{token_endpoint: 'http://{OUTSIDE}/token', client_id: me, allow_plaintext: true}}}}\n"
            f"upstreams:\n{upstreams}")
    os.chmod(folder, 0o755)
    rules("up", "--user", str(PROXY_USER))
    log = open(f"{folder}/proxy.log", "w")
    running = subprocess.Popen(
        ["setpriv", f"--reuid={PROXY_USER}", "--clear-groups", proxy, "serve", "--config", f"{folder}/config.yaml"],
        stdout=log, stderr=log)
    children.append(running)
    until("the proxy", lambda: listens("127.0.0.1", 8080))

    results["plain"] = plain_cases(six)
    results["root"] = program("http://api.example.test/", user=0)
    results["udp"] = [datagram(443), datagram(443, user=0), datagram(443, user=PROXY_USER), datagram(444)] + (
        [datagram(443, host="2001:db8::9"), datagram(444, host="2001:db8::9")] if six else [])

    # A service of this namespace can't be reached from outside.
    own = http.server.ThreadingHTTPServer(("127.0.0.1", 80), Outside)
    threading.Thread(target=own.serve_forever, daemon=True).start()
    sys.stdout, out = open(os.devnull, "w"), sys.stdout
    results["own service"] = program("http://localhost/own")
    own.shutdown()
    own.server_close()
    sys.stdout = out

    # By mark instead of by user.
    rules("up", "--user", str(PROXY_USER), "--mark", "77")
    marked = socket.socket()
    marked.setsockopt(socket.SOL_SOCKET, 36, 77)
    marked.connect((OUTSIDE, 80))
    connection = http.client.HTTPConnection(OUTSIDE)
    connection.sock = marked
    connection.request("GET", "/marked", headers={"Host": "api.example.test"})
    results["marked"] = json.loads(connection.getresponse().read())

    # The wrong user is exempt: what the proxy sends comes back to it.
    rules("up", "--user", str(PROGRAM_USER))
    results["circle"] = program("http://plain.example.test/circle", user=0)

    # TLS to port 443, by two proxies: one tunnels to listed hosts, one to all.
    secure(["tunnel.example.test:443"], 8081)
    os.environ["SSL_CERT_FILE"] = f"{folder}/roots.pem"
    tls = results["tls"] = listed_cases(six)
    secure(["*"], 8082)
    tls.update(any_cases(six))
    # The wrong user is exempt: the proxy's tunnels come back to it.
    rules("up", "--user", str(PROGRAM_USER), "--from", "80,443", "--to", "8082")
    tls["circle"] = curl("https://any.example.test/circle", "certificate", user=0)
    del os.environ["SSL_CERT_FILE"]

    rules("down")
    results["down"] = program("http://api.example.test/down")
    results["udp down"] = datagram(443)
    if namespaces:
        os.mkdir(f"{folder}/run-enclosed", 0o700)
        os.chown(f"{folder}/run-enclosed", PROXY_USER, PROXY_USER)
        results["enclosed"] = {"plain": enclosed("plain", "config", six)}
        configure(["tunnel.example.test:443"], 8081)
        results["enclosed"]["tls"] = enclosed("listed", "secure", six)
        configure(["*"], 8082)
        results["enclosed"]["tls"].update(enclosed("any", "secure", six))
    results["bad"] = [
        subprocess.run([redirect, *arguments], capture_output=True, text=True).returncode
        for arguments in (["up"], ["up", "--user", "no-such-user"], ["up", "--user", "1", "--to", "0"],
                          ["up", "--user", "1", "--from", "80,x"], ["up", "--user"], ["sideways"])]
    running.terminate()
    results["exit"] = running.wait(30)
    results["outside"] = [json.loads(line) for line in open(f"{folder}/outside.log")]
finally:
    for child in children:
        child.kill()
print(json.dumps(results))
