"""Runs a command in the sandbox of a systemd unit, without systemd: sandbox.py UNIT STATE_DIRECTORY -- COMMAND...

By the kernel's means that systemd.exec(5) uses: a user without rights, namespaces for what is mounted, seccomp(2) for system
calls. Every setting of the unit that is about the sandbox is applied, or it is an error. To be run as root; prints what was
applied, a line.
"""

import ctypes
import errno
import os
import resource
import socket
import subprocess
import sys

unit, state = sys.argv[1:3]
command = sys.argv[sys.argv.index("--") + 1 :]
USER = 61184  # the first that DynamicUser= gives out
libc = ctypes.CDLL(None, use_errno=True)
seccomp = ctypes.CDLL("libseccomp.so.2", use_errno=True)
seccomp.seccomp_init.restype = ctypes.c_void_p
ALLOW = 0x7FFF0000


def deny(code):
    return 0x00050000 | code


settings = {}
section = None
for line in open(unit):
    line = line.strip()
    if line.startswith("["):
        section = line
    elif section == "[Service]" and "=" in line and not line.startswith("#"):
        name, _, value = line.partition("=")
        settings.setdefault(name, []).append(value)


def is_on(name, *, means="yes"):
    """Takes the setting; it must be there as we know it."""
    value = settings.pop(name, [None])
    assert value == [means], f"{name}={value}"


class Comparison(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


EQUAL, MASKED_EQUAL, GREATER = 4, 7, 6


class Filter:
    def __init__(self, default):
        self.context = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(default)))

    def rule(self, action, name, *comparisons):
        number = seccomp.seccomp_syscall_resolve_name(name.encode())
        if number == -1:
            return  # this library does not know it, and neither does the kernel's table that it has
        array = (Comparison * len(comparisons))(*comparisons)
        result = seccomp.seccomp_rule_add_array(
            self.context, ctypes.c_uint32(action), number, len(comparisons), array if comparisons else None
        )
        assert result in (0, -errno.EDOM, -errno.EFAULT), f"{name}: {os.strerror(-result)}"

    def load(self):
        result = seccomp.seccomp_load(self.context)
        assert result == 0, os.strerror(-result)


def calls(group):
    """The system calls of a group such as @system-service, those of the groups in it too."""
    if not group.startswith("@"):
        return {group}
    text = subprocess.run(
        ["systemd-analyze", "syscall-filter", group], capture_output=True, text=True, check=True
    ).stdout
    found = set()
    for line in text.splitlines()[1:]:
        word = line.strip()
        if word and not word.startswith("#"):
            found |= calls(word)
    return found


def allowed_calls():
    allowed = set()
    for line in settings.pop("SystemCallFilter"):
        negative, words = line.startswith("~"), line.lstrip("~").split()
        named = set().union(*(calls(word) for word in words))
        allowed = allowed - named if negative else allowed | named
    # System calls that systemd allows every service, for its start.
    return allowed | calls("@default") | {"execve", "exit", "exit_group", "brk", "mmap", "rt_sigreturn"}


def filters():
    """The allow list last: it forbids loading more."""
    made = Filter(ALLOW)
    families = settings.pop("RestrictAddressFamilies")[0].split()
    numbers = {int(getattr(socket, family)) for family in families}
    for number in range(64):
        if number not in numbers:
            made.rule(deny(errno.EAFNOSUPPORT), "socket", Comparison(0, EQUAL, number, 0))
    made.rule(deny(errno.EAFNOSUPPORT), "socket", Comparison(0, GREATER, 63, 0))
    is_on("MemoryDenyWriteExecute")
    made.rule(deny(errno.EPERM), "mmap", Comparison(2, MASKED_EQUAL, 6, 6))
    made.rule(deny(errno.EPERM), "mprotect", Comparison(2, MASKED_EQUAL, 4, 4))
    made.rule(deny(errno.EPERM), "pkey_mprotect", Comparison(2, MASKED_EQUAL, 4, 4))
    made.rule(deny(errno.EPERM), "shmat", Comparison(2, MASKED_EQUAL, 0o100000, 0o100000))
    is_on("RestrictNamespaces")
    namespaces = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
    for flag in namespaces:
        made.rule(deny(errno.EPERM), "clone", Comparison(0, MASKED_EQUAL, flag, flag))
        made.rule(deny(errno.EPERM), "unshare", Comparison(0, MASKED_EQUAL, flag, flag))
    made.rule(deny(errno.EPERM), "setns")
    made.rule(deny(errno.ENOSYS), "clone3")
    is_on("RestrictRealtime")
    for policy in (1, 2, 6):
        made.rule(deny(errno.EPERM), "sched_setscheduler", Comparison(1, EQUAL, policy, 0))
    is_on("RestrictSUIDSGID")
    for name, argument in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("mkdir", 1), ("mkdirat", 2)):
        for bit in (0o4000, 0o2000):
            made.rule(deny(errno.EPERM), name, Comparison(argument, MASKED_EQUAL, bit, bit))
    is_on("LockPersonality")
    made.rule(deny(errno.EPERM), "personality", Comparison(0, GREATER, 0, 0))
    is_on("SystemCallArchitectures", means="native")
    is_on("SystemCallErrorNumber", means="EPERM")
    listed = Filter(deny(errno.EPERM))
    for name in sorted(allowed_calls()):
        listed.rule(ALLOW, name)
    return made, listed


def mount(*words):
    subprocess.run(["mount", *words], check=True)


def namespace():
    """What it sees: everything read-only but its own folders."""
    assert libc.unshare(0x00020000 | 0x08000000) == 0, "unshare"  # CLONE_NEWNS, CLONE_NEWIPC
    mount("--make-rprivate", "/")
    for name in (
        "ProtectHome", "PrivateTmp", "PrivateDevices", "PrivateMounts", "ProtectClock", "ProtectControlGroups",
        "ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules", "ProtectKernelTunables", "RemoveIPC",
        "DynamicUser", "NoNewPrivileges",
    ):
        is_on(name)
    is_on("ProtectSystem", means="strict")
    is_on("DevicePolicy", means="closed")
    is_on("KeyringMode", means="private")
    is_on("CapabilityBoundingSet", means="")
    is_on("AmbientCapabilities", means="")
    is_on("ProtectProc", means="invisible")
    runtime = "/run/" + settings.pop("RuntimeDirectory")[0]
    mode = int(settings.pop("RuntimeDirectoryMode")[0], 8)
    # The command and its files are seen wherever they are; the rest of the homes is not.
    kept = {os.path.dirname(os.path.realpath(word)) for word in command if word.startswith("/")}
    binds = {folder: f"/run/sandbox-{number}" for number, folder in enumerate(sorted(kept | {state}))}
    mount("-t", "tmpfs", "tmpfs", "/run")
    for folder, place in binds.items():
        os.mkdir(place)
        mount("--bind", folder, place)
    os.mkdir(runtime)
    for folder in ("/home", "/root", "/tmp", "/var/tmp"):
        if os.path.isdir(folder):
            mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", folder)
    for folder, place in binds.items():
        os.makedirs(folder, exist_ok=True)
        mount("--bind", place, folder)
    mount("-t", "proc", "-o", "hidepid=invisible", "proc", "/proc")
    mount("--bind", "/proc/sys", "/proc/sys")
    mount("-o", "remount,bind,ro", "/proc/sys")
    mount("-o", "remount,bind,ro", "/")
    mount("--bind", state, state)
    for folder in (runtime, state):
        os.chown(folder, USER, USER)
        os.chmod(folder, mode if folder == runtime else 0o700)
    mount("-o", "remount,ro", "/run")
    mount("-t", "tmpfs", "-o", f"uid={USER},gid={USER},mode={mode:o}", "tmpfs", runtime)


limit = int(settings.pop("LimitNOFILE")[0])
loaded = filters()
# The unit's user has to pass the folders that `namespace` makes, whatever umask the tests were started with.
os.umask(0o022)
namespace()
os.umask(int(settings.pop("UMask")[0], 8))
for name in list(settings):
    # Of the manager, and nothing that the process feels.
    if name.startswith("Restart") or name in (
        "Type", "ExecStart", "ExecReload", "KillMode", "TimeoutStopSec", "WatchdogSec", "NotifyAccess", "NonBlocking",
    ):
        del settings[name]
for line in settings.pop("Environment"):
    name, _, value = line.partition("=")
    os.environ[name] = value
assert not settings, f"not known: {sorted(settings)}"
# No more than there is, in a container.
limit = min(limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
for capability in range(64):
    libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
os.setgroups([])
os.setresgid(USER, USER, USER)
os.setresuid(USER, USER, USER)
assert libc.prctl(38, 1, 0, 0, 0) == 0, "no_new_privs"
for one in loaded:
    one.load()
os.execv(command[0], command)
