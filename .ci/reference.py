"""The rows of docs/configuration.md that name keys, for the tests and for editors.

    .ci/reference.py            writes what editors show of each key into KeyDescriptions.tsv
    .ci/reference.py --check    says which of it is stale, and exits 1 when some is
    .ci/reference.py --json     prints the rows: path, default as it is written, meaning, description

A table belongs to the section whose name its `##` heading is. "Key of `assertion`" in a table's head stands for the mapping
of that key, and so does `tls.ca_file` in a row.
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/configuration.md"
SOURCE = ROOT / "Sources/Configuration/Schema/KeyDescriptions.tsv"


def rows():
    section = prefix = ""
    is_table = False
    for line in PAGE.read_text().split("\n"):
        if line.startswith("## "):
            name = re.fullmatch(r"## `(\w+)`", line)
            section = name[1] if name else ""
            if section:
                yield {"path": section, "usual": "", "meaning": "", "description": None}
            if section == "clients":
                section = "clients.*"
        if not line.startswith("|"):
            is_table = False
            continue
        cells = [cell.strip() for cell in line[1:-1].split(" | ")]
        head = re.fullmatch(r"Key(?: of `([\w.]+)`)?", cells[0])
        if head:
            is_table = True
            prefix = ".".join(part for part in (section, head[1]) if part)
        elif is_table and not cells[0].startswith("-"):
            keys = re.findall(r"`([\w.]+)`", cells[0])
            usual = cells[1].split(", ")
            for index, key in enumerate(keys):
                yield {
                    "path": f"{prefix}.{key}",
                    "usual": usual[index] if len(usual) == len(keys) else cells[1],
                    "meaning": cells[2],
                    "description": first_sentence(cells[2]),
                }


def first_sentence(meaning):
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", meaning)
    return re.split(r"\. (?=[A-Z`])", text)[0].strip(". ") + "."


def main():
    if sys.argv[1:] == ["--json"]:
        print(json.dumps(list(rows())))
        return 0
    lines = [f"{row['path']}\t{row['description']}\n" for row in rows() if row["description"]]
    if sys.argv[1:] == ["--check"]:
        stale = sorted(set(SOURCE.read_text().splitlines(keepends=True)) ^ set(lines))
        for line in stale:
            print(f"{SOURCE.relative_to(ROOT)}: stale; run .ci/reference.py: {line.strip()}")
        return 1 if stale else 0
    SOURCE.write_text("".join(lines))
    return 0


sys.exit(main())
