"""The software bill of materials of a corpus: what decided its bytes, as CycloneDX 1.6 JSON.

The component that it is about is the corpus. It lists Refinery, the libraries of the stages that were on and the
interpreter with their versions, and models, lists and the tokenizer with their SHA-256, as the run recorded them; and
the stages themselves, as properties. Nothing is asked of this installation.
"""

import json
import uuid
from collections.abc import Iterator
from typing import Any

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from refinery import DISTRIBUTION
from refinery.loader.format.manifest import MANIFEST
from refinery.pipelines.reports.cards.facts import CardFacts
from refinery.pipelines.reports.cards.markdown import line_of
from refinery.pipelines.reports.cards.reproduce import libraries, models, recorded_stages

NAMESPACE = uuid.UUID("5a0c7f0e-6d0e-5c3b-9f0a-6d1c2b7a9e10")  # of serial numbers, which follow from the manifest
NAMES = {"refinery": DISTRIBUTION, "beam": "apache-beam"}  # of the manifest's versions that are distributions
DATA_FILES = (".bin", ".model", ".ftz", ".npy", ".onnx", ".safetensors")  # models by their endings; others are files


def sbom(facts: CardFacts) -> bytes:
    """The bill, the same bytes each time: its serial number follows from the manifest, and it has no time."""
    bom = Bom(components=sorted(components(facts), key=lambda each: str(each.bom_ref.value)))
    bom.serial_number = uuid.uuid5(NAMESPACE, facts.sha256)
    bom.metadata.component = subject = corpus_component(facts)
    bom.register_dependency(subject, bom.components)
    plain: dict[str, Any] = json.loads(JsonV1Dot6(bom).output_as_string())
    del plain["metadata"]["timestamp"]  # of this moment, which says nothing of the corpus
    for found in (*plain["components"], *plain["dependencies"]):
        for each in found.values():
            if isinstance(each, list):  # sets in the library
                each.sort(key=lambda item: json.dumps(item, sort_keys=True))
    plain["dependencies"].sort(key=lambda each: str(each["ref"]))
    return (json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


def corpus_component(facts: CardFacts) -> Component:
    """The corpus itself."""
    manifest = facts.manifest
    said = [Property(name=f"refinery:{name}", value=str(value)) for name, value in sorted(manifest.totals.items())]
    said += [Property(name="refinery:lane", value=line_of(manifest.lane))]
    said += [
        Property(name=f"refinery:stage:{line_of(each.name)}", value=f"version {each.version}, phase {each.phase}")
        for each in manifest.stages
    ]
    return Component(
        name=line_of(manifest.name),
        type=ComponentType.DATA,
        version=line_of(manifest.fingerprint),
        bom_ref="corpus",
        description=f"{MANIFEST} has the SHA-256 that is listed",
        hashes=[sha256(facts.sha256)],
        properties=said,
    )


def components(facts: CardFacts) -> Iterator[Component]:
    """What the corpus was made with."""
    manifest = facts.manifest
    packages = {NAMES[name]: str(version) for name, version in manifest.versions.items() if name in NAMES} | libraries(
        facts
    )
    for name, version in sorted(packages.items()):
        yield Component(
            name=line_of(name),
            type=ComponentType.FRAMEWORK if name in NAMES.values() else ComponentType.LIBRARY,
            version=line_of(version),
            bom_ref=f"pypi:{line_of(name)}",
            purl=PackageURL("pypi", name=line_of(name), version=line_of(version)),
        )
    schemes = {name: str(version) for name, version in manifest.versions.items() if name not in NAMES}
    schemes |= {scheme: scheme for _, entry in recorded_stages(facts) for scheme in entry.get("schemes") or ()}
    environment = facts.run.get("environment") or {}
    for kind, entries in (("scheme", schemes), ("environment", environment)):
        for name, version in sorted(entries.items()):
            type_ = ComponentType.PLATFORM if kind == "environment" else ComponentType.APPLICATION
            yield Component(name=line_of(name), type=type_, version=line_of(version), bom_ref=f"{kind}:{line_of(name)}")
    for path, digest in sorted(models(facts).items()):
        yield file_component(path, digest, "recipe")
    for file in manifest.files:
        if file.path.startswith("tokenizer/"):
            yield file_component(file.path, file.sha256, "corpus")


def file_component(path: str, digest: str, place: str) -> Component:
    """A model, a list or the tokenizer. place: whose path it is."""
    is_model = path.lower().endswith(DATA_FILES)
    return Component(
        name=line_of(path),
        type=ComponentType.MACHINE_LEARNING_MODEL if is_model else ComponentType.FILE,
        bom_ref=f"{place}:{line_of(path)}",
        hashes=[sha256(digest)],
    )


def sha256(digest: str) -> HashType:
    """A SHA-256."""
    return HashType(alg=HashAlgorithm.SHA_256, content=digest)
