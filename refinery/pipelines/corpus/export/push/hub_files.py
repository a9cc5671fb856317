"""Which files of a corpus or an export go to a hub: what is named here, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from refinery.loader.format.manifest import MANIFEST, SPLITS
from refinery.loader.format.packed import FOLDER as PACKED
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.export.export_manifest import listed_files, read_export
from refinery.pipelines.published.published import PublishedCorpus
from refinery.pipelines.reports.cards.about import read_about
from refinery.pipelines.reports.cards.cards import CARDS, DEFAULT
from refinery.pipelines.reports.cards.facts import read_card_facts
from refinery.pipelines.reports.run.facts import read_facts
from refinery.pipelines.reports.run.report_page import report_page
from refinery.pipelines.reports.run.samples import Rejects
from refinery.pipelines.reports.run.write import REPORT

# Folders of a corpus whose files are published: shards with their provenance, packed rows, the tokenizer, and the
# listings of shards. Never rejects/, dead_letters/, removals/, lookup/, work/, nor `_run.json` and inputs.json.
PUBLISHED = frozenset({*SPLITS, PACKED, "tokenizer", "manifests"})
NO_SAMPLES = Rejects({}, {}, 0, 0)


@dataclass(frozen=True)
class HubFiles:
    """stored: paths below the location, as they are. made: path -> bytes of what is written for the hub."""

    name: str
    fingerprint: str
    stored: tuple[str, ...]
    made: Mapping[str, bytes] = field(default_factory=dict)


def files_of_corpus(store: Store, about: str = "") -> HubFiles:
    """The card, the manifest, a report and the shards of a corpus. about: as of `refinery card`.

    The report is made again, without documents to read: report.html beside the corpus quotes dropped ones. Raises
    FormatError where there is no finished corpus.
    """
    corpus = PublishedCorpus(store)
    manifest = corpus.manifest
    listed = {entry.path for entry in manifest.all_files if entry.path.split("/")[0] in PUBLISHED}
    card = CARDS[DEFAULT]
    made = {card.file: card.write(read_card_facts(store, read_about(about)))}
    if not corpus.is_adopted:  # else there was no run to report on
        facts = replace(read_facts(store, None), rejects=NO_SAMPLES, kept=(), dead={})
        made[REPORT] = report_page(facts).encode()
    return HubFiles(manifest.name, manifest.fingerprint, (*sorted(listed), MANIFEST), made)


def files_of_export(store: Store) -> HubFiles:
    """The files that an export's manifest lists, its card among them where its format has one, and the manifest."""
    manifest, sha256 = read_export(store)
    corpora = manifest.get("corpora") or [manifest["corpus"]]
    name = ", ".join(str(corpus["name"]) for corpus in corpora)
    return HubFiles(name, sha256, (*sorted(set(listed_files(manifest))), MANIFEST))
