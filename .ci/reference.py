"""What the pages and the sources have in common: the keys of docs/configuration.md, clients.md and upstreams.md, and the
answers of docs/errors.md.

    .ci/reference.py            writes what editors show of each key into KeyDescriptions.tsv, and the table, the example
                                and the answers of Problems.tsv into docs/errors.md
    .ci/reference.py --check    says which of it is stale, and exits 1 when some is
    .ci/reference.py --json     prints the rows of keys: path, default as it is written, meaning, description

A table belongs to the section that its `##` heading names, or else the page's title. "Key of `assertion`" in a table's head stands for the mapping
of that key, and so does `tls.ca_file` in a row.
"""

import json
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [ROOT / f"docs/{name}.md" for name in ("configuration", "clients", "upstreams")]
SOURCE = ROOT / "Sources/Configuration/Schema/KeyDescriptions.tsv"
PROBLEMS = ROOT / "Sources/Proxy/Answers/Problems.tsv"
ERRORS = ROOT / "docs/errors.md"

# Values of parameters in the answers' templates. ProblemTableTests makes the same answers.
EXAMPLES = {
    "client": "items", "asked": "api.exmaple.com", "near": "api.example.com", "destination": "api.exmaple.com:80",
    "rule": "upstreams[2]", "path": "/v2/items", "method": "DELETE", "field": "x-tenant", "had": "has the value `c`",
    "resolver": "", "reach": "Nothing was sent upstream.", "fault": "The request line is malformed",
}
EXAMPLES_OF = {
    "pathNotCovered": {"listed": "/v1, /health"}, "methodNotCovered": {"listed": "GET, HEAD"},
    "targetTooLong": {"fault": "The request target is too long"},
    "otherExpectation": {"fault": "The only expectation that can be met is '100-continue'"},
    "headTooLarge": {"fault": "The head is too large"},
    "otherVersion": {"fault": "Only HTTP/1.1 and HTTP/1.0 are accepted here"},
    "unknownHost": {"asked": "api.example.net", "destination": "api.example.net:80"},
    "connectToUpstream": {"asked": "api.example.com"}, "tunnelToUpstream": {"asked": "api.example.com"},
    "connectUnlisted": {"asked": "api.example.net:443"}, "tunnelUnlisted": {"asked": "db.example.net:5432"},
    "connectNear": {"asked": "api.exmaple.com:443"}, "tunnelNear": {"asked": "api.exmaple.com:443"},
    "loginNeeded": {"advice": "open http://127.0.0.1:8081/login/items"},
    "loginLost": {"advice": "open http://127.0.0.1:8081/login/items"},
    "noToken": {"fault": "it answered 503"}, "wrongTokenEndpoint": {"fault": "it answered 404"},
    "machineShortage": {
        "advice": "This process has as many files and sockets open as it may have: raise the limit of file descriptors "
        "(ulimit -n, LimitNOFILE=), or lower max_connections",
    },
    "tls": {
        "fault": "the port speaks no TLS",
        "advice": "The port speaks no TLS: write the port that does, or http:// with `allow_plaintext: true` if plain "
        "text is intended",
    },
    "tlsCertificate": {
        "fault": "the server's certificate has expired",
        "advice": "The server's certificate has expired: renew it there, or set this machine's clock",
    },
    "nextProxy": {"fault": "CONNECT tunnel failed, response 403 (curl 56); next proxy proxy.example.com:3128 answered 403"},
    "nextProxyLogin": {
        "destination": "proxy.example.com:3128",
        "advice": "requires a name and password: write http://NAME:PASSWORD@HOST:PORT in `proxy`",
    },
    "malformedAnswer": {"fault": "A field line has no name (line 2)", "short": "A field line has no name"},
    "http2Only": {
        "fault": "the server speaks HTTP/2 only",
        "advice": "The server speaks HTTP/2 only: set `http2: true` at the upstream",
    },
}


def rows():
    title = section = prefix = ""
    is_table = False
    for line in (line for page in PAGES for line in page.read_text().split("\n")):
        if re.match(r"##? ", line):
            name = re.fullmatch(r"##? `(\w+)`", line)
            if line.startswith("# "):
                title = {"clients": "clients.*"}.get(name[1], name[1]) if name else ""
            section = name[1] if name and line.startswith("## ") else title
            if name:
                yield {"path": name[1], "usual": "", "meaning": "", "description": None}
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


def problems():
    """The rows of Problems.tsv with example values."""
    head, *lines = PROBLEMS.read_text().splitlines()
    for line in lines:
        problem = dict(zip(head.split("\t"), line.split("\t")))
        values = EXAMPLES | EXAMPLES_OF.get(problem["condition"], {})

        def fill(template):
            return re.sub(r"\{(\w+)\}", lambda match: values[match[1]], template)

        phrases = [fill(phrase) for phrase in problem["phrase"].split(" ~ ")]
        fitting = [phrase for phrase in phrases if len(phrase) <= 80 and phrase.isascii()]
        yield problem | {"phrase": (fitting or phrases[-1:])[0], "sentence": fill(problem["sentence"])}


def says_more(sentence, phrase):
    known, words = (set(re.findall(r"[a-z_]{4,}", text.lower())) for text in (phrase, sentence))
    return 2 * len(words - known) > len(words)


def errors_page():
    page = ERRORS.read_text()
    by_word = {}
    for problem in problems():
        by_word.setdefault(problem["word"], []).append(problem)
    table = ""
    for word, (first, *_) in by_word.items():
        table += f"| [`{word}`](#{word}) | {first['status']} | {first['grpc']} | `{first['error']}` |\n"
        answers = ""
        for problem in by_word[word]:
            # Each answer carries its own sentences. Here are the first answer's that say more than its phrase.
            text = f"`{problem['status']} {problem['phrase']}`"
            sentences = re.split(r"(?<=\.) (?=[A-Z`])", problem["sentence"]) if problem is first else []
            if said := " ".join(sentence for sentence in sentences if says_more(sentence, problem["phrase"])):
                text += f": {said}"
            answers += textwrap.fill(
                text, 120, initial_indent="- ", subsequent_indent="  ", break_long_words=False,
                break_on_hyphens=False) + "\n"
        page = re.sub(
            rf"(\n### {word}\n\n)(?:- `\d{{3}} .*\n(?:  .*\n)*)*\n*", lambda match: match[1] + answers + "\n", page)
    page = re.sub(r"(\n\| Word .*\n\|-.*\n)(\|.*\n)*", lambda match: match[1] + table, page, count=1)
    fence = f"\n```\n{example(by_word['no-upstream'][1])}```\n"
    return re.sub(r"\n```\n.*?```\n", lambda _: fence, page, count=1, flags=re.DOTALL)


def example(problem):
    document = {
        "type": f"urn:heimdallr-proxy:problem:{problem['word']}", "title": problem["title"],
        "status": int(problem["status"]), "detail": problem["sentence"],
        "message": f"{problem['title']}. {problem['sentence']}", "request_id": "heimdallr-1",
    }
    return (
        f"HTTP/1.1 {problem['status']} {problem['phrase']}\nContent-Type: application/problem+json\n"
        f"Proxy-Status: heimdallr-proxy; error={problem['error']}\nCache-Control: no-store\n\n"
        + json.dumps(document, separators=(",", ":")) + "\n"
    )


def main():
    if sys.argv[1:] == ["--json"]:
        print(json.dumps(list(rows())))
        return 0
    errors = errors_page()
    lines = [f"{row['path']}\t{row['description']}\n" for row in rows() if row["description"]]
    if sys.argv[1:] == ["--check"]:
        stale = sorted(set(SOURCE.read_text().splitlines(keepends=True)) ^ set(lines))
        for line in stale:
            print(f"{SOURCE.relative_to(ROOT)}: stale; run .ci/reference.py: {line.strip()}")
        old = ERRORS.read_text().splitlines()
        differing = [line for line in errors.splitlines() if line not in old]
        if errors.splitlines() != old:
            print(f"{ERRORS.relative_to(ROOT)}: stale; run .ci/reference.py: {(differing or ['order of lines'])[0]}")
        return 1 if stale or errors.splitlines() != old else 0
    SOURCE.write_text("".join(lines))
    ERRORS.write_text(errors)
    return 0


sys.exit(main())
