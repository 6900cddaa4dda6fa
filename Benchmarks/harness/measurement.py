"""One sample: starts a proxy, measures the time to its first answer and its memory, loads it, stops it."""

import os
import socket
import time
from dataclasses import dataclass

from .machine import busy_seconds, cpu_seconds, process_tree, resident_mib
from .processes import Process, wait_until
from .workloads import ask, drive


@dataclass(frozen=True)
class Settings:
    seconds: int
    warmup: int
    noise_limit: float
    """CPU time, in cores, that other programs may use on our cores before a sample counts as noisy."""
    retries: int


@dataclass
class Sample:
    peer: str
    workload: str
    round: int
    start_ms: float | None = None
    idle_mib: float | None = None
    peak_mib: float | None = None
    requests: int = 0
    cpu_us: float | None = None
    requests_per_second: float | None = None
    mib_per_second: float | None = None
    p50_us: float | None = None
    p99_us: float | None = None
    proxy_cores: float | None = None
    """Number of cores that the proxy kept busy. Near 1.0, the proxy was the bottleneck."""
    foreign_cores: float | None = None
    noisy: bool = False
    failure: str = ""


class Patience:
    """The seconds that a whole run may wait until other programs are quiet."""

    def __init__(self, seconds):
        self.left = seconds

    def wait_for_quiet(self, cores, limit):
        while self.left > 0:
            before = busy_seconds(cores)
            time.sleep(0.25)
            self.left -= 0.25
            if (busy_seconds(cores) - before) / 0.25 <= limit:
                return


def answers_200(port, workload):
    """Whether one small request gets a 200 now. Cheaper than `ask`, because a start is measured by polling this."""
    request = f"GET {workload.target} HTTP/1.1\r\nHost: {workload.host}\r\nConnection: close\r\n\r\n"
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.settimeout(5)
            connection.sendall(request.encode())
            return connection.recv(4096).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def start(name, command, stage, probe, limit=20.0, pause=0.001):
    """Starts a proxy. Returns it, and the milliseconds until its first 200 for `probe`."""
    log = stage.directory / f"{name}.log"
    began = time.perf_counter()
    process = Process(command, stage.cores.proxy, log)
    try:
        wait_until(lambda: answers_200(stage.proxy_port, probe), process, name, limit, pause)
    except BaseException:
        process.stop()
        raise
    return process, (time.perf_counter() - began) * 1000


def measure(peer, workload, probe, round_number, stage, settings, patience):
    """Takes a sample of one proxy under one workload. Wrong answers are in `Sample.failure`, not exceptions."""
    sample = Sample(peer=peer.name, workload=workload.name, round=round_number)
    process, sample.start_ms = start(peer.name, peer.command(stage), stage, probe)
    try:
        time.sleep(0.3)
        sample.idle_mib = resident_mib(process.tree(), "VmRSS")
        wrong = ask(stage.port(workload), workload)
        if wrong:
            sample.failure = wrong
            return sample
        for _ in range(1 + settings.retries):
            patience.wait_for_quiet(stage.cores.all, settings.noise_limit)
            load(sample, process, workload, stage, settings)
            sample.noisy = not sample.failure and sample.foreign_cores > settings.noise_limit
            if not sample.noisy:
                break
        sample.peak_mib = resident_mib(process.tree(), "VmHWM")
        return sample
    finally:
        process.stop()


def load(sample, process, workload, stage, settings):
    """Warms up, then measures the load. Keeps the earlier values in `sample` if they were quieter."""
    if settings.warmup:
        drive(stage.port(workload), workload, settings.warmup, stage.directory)
    tree, everything = process.tree(), process_tree(os.getpid())
    proxy_before, own_before, busy_before = cpu_seconds(tree), cpu_seconds(everything), busy_seconds(stage.cores.all)
    began = time.perf_counter()
    seen = drive(stage.port(workload), workload, settings.seconds, stage.directory)
    elapsed = time.perf_counter() - began
    proxy = cpu_seconds(tree) - proxy_before
    own = cpu_seconds(everything) - own_before  # includes the load generator, a child that has been waited for
    foreign = max(0.0, busy_seconds(stage.cores.all) - busy_before - own) / elapsed
    sample.failure = seen.failures
    if sample.failure or (sample.foreign_cores is not None and sample.foreign_cores <= foreign):
        return
    sample.foreign_cores = foreign
    sample.requests = seen.requests
    sample.cpu_us = proxy * 1e6 / seen.requests
    sample.proxy_cores = proxy / elapsed
    sample.requests_per_second = seen.requests / seen.seconds
    sample.mib_per_second = seen.requests * workload.payload_bytes / seen.seconds / (1024 * 1024)
    sample.p50_us, sample.p99_us = seen.p50, seen.p99
