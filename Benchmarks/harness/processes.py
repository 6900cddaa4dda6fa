"""Starts and stops the programs of a run. Signals only processes started here, by pid."""

import os
import signal
import subprocess
import time

from .machine import BenchmarkError, process_stat, process_tree


class DidNotStart(BenchmarkError):
    """A program ended, or was not ready in time."""


class Process:
    def __init__(self, command, cores, log):
        """Starts `command` on `cores`, with its output appended to the file `log`."""
        self.log = log
        ours = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores)  # inherited by the child, without a wrapper, which would take start time
        try:
            with open(log, "ab") as output:
                self._child = subprocess.Popen(
                    [str(word) for word in command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
        finally:
            os.sched_setaffinity(0, ours)

    @property
    def pid(self):
        return self._child.pid

    def tree(self):
        return process_tree(self.pid)

    def has_ended(self):
        return self._child.poll() is not None

    def failure(self, what):
        """An error with the end of the program's own output."""
        text = self.log.read_text(errors="replace").strip().splitlines()[-8:]
        return DidNotStart("\n    ".join([what, *text]))

    def stop(self, patience=2.0):
        """Sends SIGTERM to the program, then SIGKILL to all of its processes that are left."""
        tree = self.tree()
        if not self.has_ended():
            self._child.send_signal(signal.SIGTERM)
            try:
                self._child.wait(patience)
            except subprocess.TimeoutExpired:
                pass
        for known in tree:
            now = process_stat(known.pid)
            if now and now.started == known.started:
                try:
                    os.kill(known.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self._child.wait()


def wait_until(condition, process, what, limit=20.0, pause=0.001):
    """Polls until `condition()` is true. Raises when the process ends or `limit` seconds pass."""
    end = time.monotonic() + limit
    while not condition():
        if process.has_ended():
            raise process.failure(f"{what} ended at start")
        if time.monotonic() > end:
            raise process.failure(f"{what} was not ready within {limit:.0f} s")
        time.sleep(pause)
