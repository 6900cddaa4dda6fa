"""What an enclosed program may try: one line for each attempt, `name: outcome`. The arguments: a port of 127.0.0.1 outside
where somebody listens, the admin socket, and a file with a secret."""
import ctypes
import errno
import os
import socket
import subprocess
import sys
import time

PORT, ADMIN, SECRET = int(sys.argv[1]), sys.argv[2], sys.argv[3]
C = ctypes.CDLL(None, use_errno=True)


def attempt(name, action):
    try:
        outcome = action()
    except OSError as error:
        outcome = errno.errorcode.get(error.errno, type(error).__name__)
    print(f"{name}: {outcome}", flush=True)


def dial(address, family=socket.AF_INET, kind=socket.SOCK_STREAM):
    def action():
        with socket.socket(family, kind) as one:
            one.settimeout(20)
            begin = time.monotonic()
            try:
                one.connect(address)
            finally:
                # A refusal is told at once, not by silence.
                assert time.monotonic() - begin < 10
        return "connected"
    return action


def opened(family, kind=socket.SOCK_STREAM, protocol=0):
    def action():
        socket.socket(family, kind, protocol).close()
        return "open"
    return action


def call(*arguments):
    def action():
        result = C.syscall(*arguments)
        if result < 0:
            raise OSError(ctypes.get_errno(), "")
        return "done"
    return action


def bound(port):
    def action():
        with socket.socket() as one:
            one.bind(("127.0.0.1", port))
            one.listen()
            with socket.create_connection(one.getsockname()):
                return "done"
    return action


def admin():
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(ADMIN)
    return "connected"


def read(path):
    return lambda: f"{len(open(path, 'rb').read())} bytes"


def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return lambda: next(line.split("\t", 1)[1] for line in lines if line.startswith(name + ":"))


attempt("tcp, another port", dial(("192.0.2.1", 8443)))
attempt("tcp6, another port", dial(("2001:db8::1", 8443), socket.AF_INET6))
attempt("udp 443", dial(("192.0.2.1", 443), kind=socket.SOCK_DGRAM))
attempt("udp ntp", dial(("192.0.2.1", 123), kind=socket.SOCK_DGRAM))
attempt("127.0.0.1 outside", dial(("127.0.0.1", PORT)))
attempt("vsock", opened(40))
attempt("raw", opened(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("ping", opened(socket.AF_INET, socket.SOCK_DGRAM, 1))
attempt("packet", opened(17, socket.SOCK_RAW))
attempt("bluetooth", opened(31, socket.SOCK_RAW, 1))
attempt("unix", opened(socket.AF_UNIX))
attempt("io_uring", call(425, 8, 0))
attempt("x32", call(0x4000_0000 | 39) if os.uname().machine == "x86_64" else lambda: "ENOSYS")
attempt("keys", call(249 if os.uname().machine == "x86_64" else 218, b"user", b"x", None, 0))
attempt("typing", call(16 if os.uname().machine == "x86_64" else 29, 0, 0x5412, b"x"))
attempt("unmount", call(166 if os.uname().machine == "x86_64" else 39, b"/etc/resolv.conf", 2))
attempt("port 80", bound(80))
attempt("own server", bound(0))
attempt("admin socket", admin)
attempt("secret", read(SECRET))
attempt("launcher's memory", read(f"/proc/{os.getppid()}/mem"))
attempt("launcher's variables", read(f"/proc/{os.getppid()}/environ"))
attempt("launcher's root", lambda: os.listdir(f"/proc/{os.getppid()}/root"))
attempt("resolv.conf", lambda: open("/etc/resolv.conf").read().strip())
attempt("capabilities", status("CapEff"))
attempt("bounding set", status("CapBnd"))
attempt("no new privileges", status("NoNewPrivs"))
attempt("nested", lambda: subprocess.run(
    ["unshare", "-Urn", "ip", "link", "add", "a", "type", "veth", "peer", "name", "b", "netns", "1"],
    stderr=subprocess.DEVNULL).returncode != 0)
attempt("inherited", lambda: sorted(name for name in os.listdir("/proc/self/fd") if name in ("6", "7", "8", "9")))
