"""The kernel's data: processes, their CPU time and memory, free ports, cores, and other programs' load."""

import os
import random
import socket
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class BenchmarkError(Exception):
    """An error that the user can correct. Its text is shown without a traceback."""


@dataclass(frozen=True)
class ProcessStat:
    pid: int
    parent: int
    started: int
    """Start time in ticks since boot. With the pid, it identifies a process forever."""
    cpu_seconds: float
    """User and system time of the process and of the children it has waited for."""


def process_stat(pid):
    """The process's line in /proc, or None when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()  # the program's name may contain spaces and parentheses
    return ProcessStat(
        pid=pid,
        parent=int(fields[1]),
        started=int(fields[19]),
        cpu_seconds=sum(int(ticks) for ticks in fields[11:15]) / TICKS_PER_SECOND,
    )


def process_tree(root):
    """The process and all its living descendants."""
    stats = [process_stat(int(name)) for name in os.listdir("/proc") if name.isdigit()]
    children = {}
    for stat in filter(None, stats):
        children.setdefault(stat.parent, []).append(stat)
    tree = [stat for stat in stats if stat and stat.pid == root]
    for stat in tree:  # the loop also visits the appended children
        tree += children.get(stat.pid, [])
    return tree


def cpu_seconds(tree):
    """CPU time of these processes so far, ended threads included. Resolution: one tick, usually 10 ms."""
    now = [process_stat(stat.pid) for stat in tree]
    return sum(stat.cpu_seconds for stat in now if stat)


def resident_mib(tree, field):
    """Sum of `VmRSS` (now) or `VmHWM` (highest so far) in MiB; pages shared between processes count in each."""
    kib = 0
    for stat in tree:
        try:
            lines = Path(f"/proc/{stat.pid}/status").read_text().splitlines()
        except OSError:
            continue
        kib += sum(int(line.split()[1]) for line in lines if line.startswith(field + ":"))
    return kib / 1024


def busy_seconds(cores):
    """Time that these cores spent on anything, time stolen by the hypervisor included."""
    total = 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *ticks = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in cores:
            user, nice, system, _, _, irq, softirq, steal = (int(t) for t in ticks[:8])
            total += user + nice + system + irq + softirq + steal
    return total / TICKS_PER_SECOND


@dataclass(frozen=True)
class Cores:
    """Cores of each part. Without pinning, each part may use all cores."""

    load: frozenset
    origin: frozenset
    proxy: frozenset

    @property
    def all(self):
        return self.load | self.origin | self.proxy

    @property
    def pinned(self):
        return not self.proxy & self.load


def choose_cores(pin):
    usable = sorted(os.sched_getaffinity(0))
    if not pin or len(usable) < 2:
        return Cores(*[frozenset(usable)] * 3)
    load, *others = usable
    proxy = others[-1]
    origin = others[0] if len(others) > 1 else load
    return Cores(load=frozenset([load]), origin=frozenset([origin]), proxy=frozenset([proxy]))


def free_ports(count):
    """Unused ports of 127.0.0.1, below those that the kernel gives to outgoing connections."""
    lowest_outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    candidates = list(range(10_000, max(lowest_outgoing, 11_000)))
    random.shuffle(candidates)
    found = []
    for port in candidates:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise BenchmarkError("no free ports on 127.0.0.1")


def description():
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return f"{model}, {os.cpu_count()} cores, Linux {os.uname().release}"
