"""Which verdicts belong to which documents: the parts of phases 1 and 2, paired for phase 3."""

from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.phases import Phase
from refinery.transforms.write.kept_documents import PartPair


def pair_parts(clean: Phase, dedup: Phase) -> list[PartPair]:
    """A pair for each row group of every part. Raises RefineError for a part that lacks its verdicts."""
    verdicts = {part["path"].split("/")[-1]: part["path"] for part in dedup.parts("verdicts")}
    pairs = [
        PartPair(clean.root_of(part), part["path"], dedup.root, verdicts.get(part["path"].split("/")[-1], ""), group)
        for part in clean.parts("documents")
        for group in range(part["groups"])
    ]
    if verdicts and any(not pair.verdicts for pair in pairs):
        raise RefineError(f"{dedup.root}: a part of documents/ has no verdicts; remove dedup.json and run again")
    return pairs
