"""Transparent redirection in network namespaces: programs that know nothing of a proxy, the proxy beside them, and an
"outside" behind a virtual cable. Run in fresh network and mount namespaces; prints what happened as one JSON object.

Usage: unshare --net --mount transparent.py PROXY REDIRECT TOOL FOLDER
"""
import http.client, http.server, json, os, socket, subprocess, sys, threading, time, urllib.error, urllib.request

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


if proxy == "outside":
    # In the other namespace, once the cable is there.
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
    return subprocess.run(
        ["setpriv", f"--reuid={user}", "--clear-groups", *command], capture_output=True, text=True, timeout=30)


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


def rules(*arguments):
    run(redirect, *arguments, "--tool", tool)


results, children = {}, []
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
    server = subprocess.Popen(
        [*enter, "/usr/bin/python3", __file__, "outside", "", "", ""], stdout=open(f"{folder}/outside.log", "w"))
    children.append(server)
    until("the server outside", lambda: listens(OUTSIDE, 80))

    names = "\n".join(
        ["127.0.0.1 localhost"] + [f"{OUTSIDE} {name}.example.test" for name in ("api", "plain", "unknown")]
        + (["2001:db8::9 six.example.test"] if six else []))
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

    results["program"] = program("http://api.example.test/v1?x=1", data="hello")
    results["root"] = program("http://api.example.test/", user=0)
    elsewhere = as_user(
        PROGRAM_USER, "curl", "-sS", "--resolve", "api.example.test:80:198.51.100.77", "http://api.example.test/elsewhere")
    results["elsewhere"] = json.loads(elsewhere.stdout)
    results["unknown"] = program("http://unknown.example.test/")
    results["six"] = program("http://six.example.test/six") if six else None

    # A service of this namespace's own is nobody's outside.
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

    rules("down")
    results["down"] = program("http://api.example.test/down")
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
