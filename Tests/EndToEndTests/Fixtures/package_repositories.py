"""Makes a Debian repository and a Python package index in a folder: package_repositories.py FOLDER."""

import hashlib
import pathlib
import subprocess
import sys
import zipfile

FOLDER = pathlib.Path(sys.argv[1])


def debian():
    repository = FOLDER / "debian"
    repository.mkdir()
    entries = []
    for number in range(6):
        name = f"heimdallr-test-{number}"
        tree = FOLDER / name
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "usr/share").mkdir(parents=True)
        # Incompressible, so that the file is large.
        (tree / "usr/share" / name).write_bytes(hashlib.shake_256(name.encode()).digest(300_000))
        control = f"Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: Nobody <nobody@example.com>\n"
        (tree / "DEBIAN/control").write_text(control + "Description: nothing\n")
        for path in tree.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        tree.chmod(0o755)
        file = repository / f"{name}_1.0_all.deb"
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", tree, file], check=True, stdout=subprocess.DEVNULL)
        content = file.read_bytes()
        entries.append(
            f"{control}Filename: ./{file.name}\nSize: {len(content)}\n"
            f"SHA256: {hashlib.sha256(content).hexdigest()}\nDescription: nothing\n")
    packages = "\n".join(entries).encode()
    (repository / "Packages").write_bytes(packages)
    (repository / "Release").write_text(
        f"Origin: test\nDate: Thu, 01 Jan 2026 00:00:00 UTC\n"
        f"SHA256:\n {hashlib.sha256(packages).hexdigest()} {len(packages)} Packages\n")


def python():
    folder = FOLDER / "simple/heimdallr-test"
    folder.mkdir(parents=True)
    name = "heimdallr_test-1.0-py3-none-any.whl"
    with zipfile.ZipFile(folder / name, "w") as wheel:
        wheel.writestr("heimdallr_test.py", "ANSWER = 42\n")
        information = "heimdallr_test-1.0.dist-info"
        wheel.writestr(f"{information}/METADATA", "Metadata-Version: 2.1\nName: heimdallr-test\nVersion: 1.0\n")
        wheel.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{information}/RECORD", "")
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "index.html").write_text(f'<!DOCTYPE html><html><body><a href="{name}#sha256={digest}">{name}</a></body></html>')


debian()
python()
