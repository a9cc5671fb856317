"""The part of the google provider's schema that terraform/ uses: `python -m tools.provider_schema SOURCE`.

SOURCE is a wheel of cdktn-provider-google, whose classes are generated from the provider's schema (20.3.1 has provider
7.46.1), or what the provider itself says: `terraform providers schema -json`. The result has the form of the latter,
without descriptions: tests/terraform/google_schema.json. `values` are the allowed values that a description lists. A
wheel does not say how many blocks a list of blocks may have, nor which values are sensitive.
"""

import gzip
import io
import json
import re
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "tests" / "terraform" / "google_schema.json"
LICENCE = "MPL-2.0 (https://www.mozilla.org/MPL/2.0/), Copyright HashiCorp, Inc. and others"
CHANGED = "cut to the resources of terraform/, without descriptions"

# The arguments of provider "google" that are configurable by people; the other 200 are addresses of services.
PROVIDER = ("billing_project", "default_labels", "project", "region", "user_project_override")

_CLASS = re.compile(r"^class (\w+) extends cdktn\.(\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^    // (\w+) - computed: (\w+), optional: (\w+), required: (\w+)\n(.*?^    \}\n)", re.M | re.S)
_MADE = re.compile(r'= new (?:\w+\.)?(\w+)\(this, "\w+"(?:, (true|false))?\)')
_READ = re.compile(r"return (cdktn\.Fn\.tolist\()?this\.get(\w+)Attribute\(")
_KIND = re.compile(
    r'^ +(\w+): \{\n +value: .*\n +isBlock: (true|false),\n +type: "(\w+)",\n +storageClassType: "(\w+)"', re.MULTILINE
)
_INTERFACE = re.compile(r"^export interface (\w+) (?:extends [\w.]+ )?\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_ARGUMENT = re.compile(r"/\*\*\n(.*?)\*/\n    readonly (\w+)\??:", re.DOTALL)
_VALUES = re.compile(r'(?:Possible values: \[|Supported values include: )((?:"[^"]*"(?:, )?)+)')
_SIMPLE = {"string": "string", "number": "number", "boolean": "bool"}
_COLLECTIONS = {
    "list": ["list", "string"],
    "stringList": ["list", "string"],
    "numberList": ["list", "number"],
    "stringMap": ["map", "string"],
    "booleanMap": ["map", "bool"],
}


def used(folder: Path = ROOT / "terraform") -> dict[str, set[str]]:
    """{"resource": kinds of resources, "data": kinds of data sources} in the files of terraform/."""
    text = "\n".join(path.read_text() for path in sorted(folder.rglob("*.tf")))
    return {kind: set(re.findall(rf'^{kind} "(google_\w+)"', text, re.MULTILINE)) for kind in ("resource", "data")}


class Bindings:
    """Generated classes of one resource: index.js has names, flags and nesting, index.d.ts has descriptions."""

    def __init__(self, code: str, declared: str) -> None:
        self.classes = {name: (base, body) for name, base, body in _CLASS.findall(code)}
        functions = re.findall(r"^function (\w+)ToHclTerraform\(struct\) \{\n(.*?)^\}", code, re.M | re.S)
        self.kinds = {name.lower(): kinds(body) for name, body in functions}
        self.values = {
            (interface, argument): re.findall(r'"([^"]*)"', found[1])
            for interface, body in _INTERFACE.findall(declared)
            for text, argument in _ARGUMENT.findall(body)
            if (found := _VALUES.search(" ".join(text.replace("*", " ").split())))
        }

    def root(self) -> tuple[str, dict[str, Any]]:
        """Terraform's name of the resource, and its block."""
        for name, (base, body) in self.classes.items():
            if base.startswith("Terraform"):
                terraform = the_one(r'tfResourceType = "(\w+)"', body)
                return terraform, self.block(name, f"{name}Config")
        raise ValueError("no class of a resource in this file")

    def block(self, name: str, interface: str) -> dict[str, Any]:
        """The block of one class. interface: the declared type of its arguments."""
        body = self.classes[name][1]
        written = kinds(body) or self.kinds.get(interface.lower(), {})
        attributes: dict[str, Any] = {}
        blocks: dict[str, Any] = {}
        for field, computed, optional, required, rest in _FIELD.findall(body):
            if self.classes[name][0] == "TerraformProvider" and field not in PROVIDER:
                continue
            said = {"computed": computed, "optional": optional, "required": required}
            flags = {name: True for name, on in said.items() if on == "true"}
            is_block, kind, element = written.get(field, ("false", "list", ""))
            made = _MADE.search(rest)
            if made and is_block == "true":
                blocks[field] = self.nested(made[1], kind, "required" in flags)
            elif made and not made[1].endswith("Map"):  # a list that the service computes
                inner = self.block(made[1].removesuffix("List") + "OutputReference", "")
                attributes[field] = {"type": ["list", as_type(inner)], **flags}
            else:
                attributes[field] = {"type": value_type(rest, kind, element), **flags}
                argument = re.search(r"get (\w+)\(\)", rest)
                if argument and (interface, argument[1]) in self.values:
                    attributes[field]["values"] = self.values[interface, argument[1]]
        return {key: value for key, value in (("attributes", attributes), ("block_types", blocks)) if value}

    def nested(self, made: str, kind: str, required: bool) -> dict[str, Any]:
        interface = re.sub(r"(List|OutputReference)$", "", made)
        found: dict[str, Any] = {"nesting_mode": "single" if kind == "struct" else kind}
        found["block"] = self.block(f"{interface}OutputReference", interface)
        if required:
            found["min_items"] = 1
        if made.endswith("OutputReference") and kind != "struct":
            found["max_items"] = 1
        return found


def kinds(body: str) -> dict[str, tuple[str, str, str]]:
    """What is written per argument: whether it is a block, how it is nested, the type of its values."""
    return {name: (is_block, kind, element) for name, is_block, kind, element in _KIND.findall(body)}


def value_type(accessor: str, kind: str, written: str) -> Any:
    """Terraform's type of an attribute: as it is written where people may set it, else from the code that reads it."""
    made, read = _MADE.search(accessor), _READ.search(accessor)
    name = written or (made[1] if made else read[2] if read else "")
    simple = _SIMPLE.get(name.lower())
    if simple is not None:
        return simple
    element = _COLLECTIONS[name[0].lower() + name[1:]]
    return ["set", element[1]] if kind == "set" or (read and read[1]) else element


def as_type(block: dict[str, Any]) -> Any:
    """The type of an object that only the service sets."""
    fields = {name: facts["type"] for name, facts in block.get("attributes", {}).items()}
    return ["object", fields]


def from_wheel(path: Path) -> tuple[str, dict[str, Any]]:
    """The provider's version, and everything that `used` names."""
    with zipfile.ZipFile(path) as wheel:
        inner = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
        packed = io.BytesIO(gzip.decompress(wheel.read(inner)))
    folders = tuple(f"package/lib/{folder_of(kind, name)}/" for kind, names in used().items() for name in names)
    files: dict[str, str] = {}
    with tarfile.open(fileobj=packed) as archive:
        for member in archive:
            opened = (
                archive.extractfile(member) if member.name.startswith((*folders, "package/lib/provider/")) else None
            )
            if opened is not None:
                files[member.name] = opened.read().decode()

    def read(folder: str, ending: str) -> str:
        """All files of a folder; a large resource has its blocks in files of their own."""
        start = f"package/lib/{folder}/"
        return "\n".join(text for name, text in files.items() if name.startswith(start) and name.endswith(ending))

    found: dict[str, Any] = {"resource_schemas": {}, "data_source_schemas": {}}
    for kind, key in (("resource", "resource_schemas"), ("data", "data_source_schemas")):
        for name in sorted(used()[kind]):
            folder = folder_of(kind, name)
            terraform, block = Bindings(read(folder, ".js"), read(folder, ".d.ts")).root()
            if terraform != name:
                raise ValueError(f"{folder} has {terraform}, not {name}")
            found[key][name] = {"block": block}
    code = read("provider", ".js")
    found["provider"] = {"block": Bindings(code, read("provider", ".d.ts")).root()[1]}
    return the_one(r"providerVersion: '([\d.]+)'", code), found


def folder_of(kind: str, name: str) -> str:
    """Where the bindings of a resource ("resource") or data source ("data") are in the package."""
    return {"resource": "", "data": "data-google-"}[kind] + name.removeprefix("google_").replace("_", "-")


def the_one(pattern: str, text: str) -> str:
    """The first group of a pattern that must occur."""
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"nothing in the bindings is like {pattern}")
    return found[1]


def from_dump(path: Path) -> tuple[str, dict[str, Any]]:
    """The same of `terraform providers schema -json`, which does not name the provider's version."""
    schemas = next(iter(json.loads(path.read_text())["provider_schemas"].values()))
    kinds = {"resource_schemas": used()["resource"], "data_source_schemas": used()["data"]}
    found = {key: {name: bare(schemas[key][name]) for name in sorted(names)} for key, names in kinds.items()}
    return "?", {**found, "provider": bare(schemas["provider"])}


def bare(node: Any) -> Any:
    """Without descriptions; `values` where one lists them."""
    if not isinstance(node, dict):
        return node
    kept = {key: bare(value) for key, value in node.items() if key not in ("description", "description_kind")}
    if isinstance(text := node.get("description"), str) and "type" in node and (found := _VALUES.search(text)):
        kept["values"] = re.findall(r'"([^"]*)"', found[1])
    return kept


def main(arguments: list[str]) -> None:
    source = Path(arguments[0])
    version, found = from_dump(source) if source.suffix == ".json" else from_wheel(source)
    known = found["provider"]["block"]["attributes"]
    block = {"attributes": {name: known[name] for name in PROVIDER}}
    about = {
        "provider": "hashicorp/google",
        "version": version,
        "licence": LICENCE,
        "from": source.name,
        "changed": CHANGED,
    }
    lines = [f'"about": {json.dumps(about)}', f'"provider": {json.dumps({"block": block}, separators=(",", ":"))}']
    for key in ("data_source_schemas", "resource_schemas"):
        rows = (f'"{name}":{json.dumps(node, separators=(",", ":"))}' for name, node in sorted(found[key].items()))
        lines.append(f'"{key}": {{\n' + ",\n".join(rows) + "\n}")
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{TARGET.relative_to(ROOT)}: {len(found['resource_schemas'])} resources of {version}")


if __name__ == "__main__":
    main(sys.argv[1:])
