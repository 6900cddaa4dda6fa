"""Checks YAML texts against a JSON Schema, as an editor would.

Reads one JSON value from each line: first the schema, then objects with `yaml`. Answers each with a line: the list of
errors, empty if the text fits.
"""

import io
import json
import re
import sys

from jsonschema import Draft202012Validator
from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, ScalarNode

# Types of plain scalars (YAML 1.2, section 10.3.2), by which yaml-language-server reads.
CORE = [
    (re.compile(r"null|Null|NULL|~|"), lambda text: None),
    (re.compile(r"true|True|TRUE"), lambda text: True),
    (re.compile(r"false|False|FALSE"), lambda text: False),
    (re.compile(r"[-+]?[0-9]+"), int),
    (re.compile(r"0o[0-7]+"), lambda text: int(text[2:], 8)),
    (re.compile(r"0x[0-9a-fA-F]+"), lambda text: int(text[2:], 16)),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
    (re.compile(r"[-+]?\.(inf|Inf|INF)"), lambda text: float(text.replace(".", ""))),
    (re.compile(r"\.(nan|NaN|NAN)"), lambda text: float("nan")),
]


def value(node):
    if isinstance(node, ScalarNode):
        if node.style is None:
            for pattern, read in CORE:
                if pattern.fullmatch(node.value):
                    return read(node.value)
        return node.value
    if isinstance(node, MappingNode):
        return {key.value: value(inner) for key, inner in node.value}
    return [value(inner) for inner in node.value]


def main():
    schema = json.loads(sys.stdin.readline())
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        try:
            found = value(YAML(typ="safe", pure=True).compose(io.StringIO(json.loads(line)["yaml"])))
            problems = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(found)]
        except Exception as error:  # noqa: BLE001: the test must see every error
            problems = [f"not read: {error!r}"]
        print(json.dumps(problems), flush=True)


main()
