"""A corpus in another format: `export_corpus`, what `refinery export` runs."""

from collections.abc import Callable
from os import PathLike
from typing import Any

from refinery.loader.errors import NoTexts, NoTokens
from refinery.pipelines.corpus.export.export_format import TOKENS
from refinery.pipelines.corpus.export.options import ExportOptions
from refinery.pipelines.corpus.export.place import SourceCorpus, open_corpus
from refinery.pipelines.corpus.export.texts import TextExport
from refinery.pipelines.run.prefix import location
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.wording import many


def export_corpus(
    prefix: str | PathLike[str],
    output: str | PathLike[str],
    options: ExportOptions,
    runner: Runner,
    append: bool = False,
    rewrite: bool = False,
    work: str = "",
    recipe: str = "",
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Write the corpus at `prefix` to `output`, from wherever that stands, and return the export's manifest.

    runner: an open one. append: tokens alone, go on in an export of other corpora. rewrite: tokens alone, take out of
    an export what takedowns took out of the corpus, and add nothing. work: the corpus' work location, ""
    for PREFIX/work; needed only where tokens do not decode to the text, and then the file of its recipe, too, if that
    has stages of the user's own. Raises ValueError for options that do not fit, FormatError for a damaged or unfinished
    corpus, RefineError for a place that holds something else, and whatever a job raises. Called again, it goes on where
    it stopped.
    """
    for flag, is_set in (("--append", append), ("--rewrite", rewrite)):
        if is_set and options.format != TOKENS:
            raise ValueError(f"{flag}: given with --format {options.format}, it is for --format {TOKENS}")
    if append and rewrite:
        raise ValueError("--append: given with --rewrite, which adds nothing; run one after the other")
    for place in (str(prefix), str(output)):
        if runner.remote and not place.startswith("gs://"):
            raise ValueError(f"{place}: given with --runner {runner.name}, whose workers need gs://bucket/prefix")
    corpus = open_corpus(str(prefix))
    if location(str(output)).startswith(f"{corpus.root}/"):
        raise ValueError(f"--output: {output} given, which is inside the corpus; name another place")
    if not corpus.manifest.has_tokens:
        raise _refusal(corpus, options)
    if options.format == TOKENS:
        from refinery.pipelines.corpus.export.token_export import TokenExport

        made = TokenExport(corpus, str(output), options, runner, append, rewrite, say).run()
        if not made["shards"]:
            held = sum(made["leftover_tokens"].values())
            say(
                f"warning: {output} has no full shard: {many(held, 'token')} wait in leftover files for the next "
                f"--append, and torch loads none of them; give a --shard-tokens below {options.shard_tokens:,}"
            )
        return made
    return TextExport(corpus, str(output), options, runner, work, recipe, say).run()


def _refusal(corpus: SourceCorpus, options: ExportOptions) -> ValueError:
    """Why a corpus of texts is not exported: an export makes texts of tokens, or files of tokens."""
    if options.format == TOKENS:
        return NoTokens(corpus.root)
    if not corpus.manifest.written.has_texts:
        return NoTexts(corpus.root)
    endings = ", ".join(ending for _, ending in corpus.manifest.written.own)
    return ValueError(
        f"{corpus.root}: its shards are texts already ({endings}): use train/ and validation/ as they are"
    )
