"""What can be wrong with the files that a recipe names, found before anything runs."""

import re
from typing import Any

import numpy as np
import pyarrow as pa

from refinery.loader.format.kept_columns import KeptColumn
from refinery.loader.format.packed import PackedFormat
from refinery.loader.format.written import MASKED, MEGATRON_FILES, WRITER
from refinery.pipelines.recipe.recipe import Recipe
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from refinery.transforms.core.lane import AnyStage
from refinery.transforms.core.names import PHASES
from refinery.transforms.dedup.cutting_pass import Compared
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.signatures import no_key, signature_table, word_key
from refinery.transforms.dedup.verdicts import verdicts_schema
from refinery.transforms.tokenize.chunk_notes import CHUNKS
from refinery.transforms.tokenize.encode import TokenizerInfo, check_tokenizer
from refinery.transforms.write.kept_values import plan_columns
from refinery.transforms.write.packing.write_packed import packed_format


def check_files(recipe: Recipe) -> TokenizerInfo | None:
    """Load every list and model of the recipe once; returns what the run must know of its tokenizer, None where its
    lane writes texts.

    Raises RecipeError, one line with the section's path. Cost: about a second, most of it the tokenizer.
    """
    writer = recipe.LANE.writer
    known = writer.name in (WRITER, MASKED) and tuple(writer.files.items()) == MEGATRON_FILES
    if writer.counts_tokens and not known:
        raise RecipeError(f"lane: the writer {writer.name!r} of tokens given, {WRITER!r} alone is known to readers")
    active = [found for phase in PHASES for found in recipe.active(phase)]
    for stage, params in sorted(active, key=lambda found: bool(found[0].uses)):  # what others use is checked first
        check_stage(stage, params)
    check_signature(recipe)
    check_compared(recipe)
    return check_tokens(recipe) if writer.counts_tokens else None


def check_tokens(recipe: Recipe) -> TokenizerInfo:
    """Load what its encoding stages need; returns what the run must know of its tokenizer. Raises RecipeError as
    `check_files`."""
    for stage, params in recipe.active(PHASES[-1]):
        if stage in recipe.LANE.encoding:
            check_stage(stage, params)
    tokenizer = check_tokenizer(recipe.tokenizer)
    packed_rows(recipe, tokenizer)
    return tokenizer


def check_signature(recipe: Recipe) -> None:
    """Raise RecipeError where the secret of signatures is missing, short, or not the one that the recipe says."""
    try:
        word_key(recipe.signature)
    except (ValueError, OSError) as error:
        raise RecipeError(f"signature.{error}") from error


def check_compared(recipe: Recipe) -> None:
    """Raise RecipeError if a stage of deduplication makes columns that it does not declare or that another stage has,
    or if its graph cannot be built: phase 1 would run in vain."""
    none = np.empty((0, recipe.signature.permutations), np.uint32)
    for stage, _ in recipe.comparing():
        try:
            signature_table([], [], [], [], [], none, stage.hashed.made((), recipe.signature))
        except Exception as error:  # of a user's own code
            raise RecipeError(f"{stage.key}: {error}") from error
    for stage, params in recipe.cutting():
        try:
            verdicts_schema(pa.string(), (stage.cuts,))
            stage.transform(params, Compared((), Parts(1), 1, no_key))
        except Exception as error:  # of a user's own code
            raise RecipeError(f"{stage.key}: {error}") from error


def packed_rows(recipe: Recipe, tokenizer: TokenizerInfo | None) -> PackedFormat | None:
    """The format of the packed rows, where the recipe asks for them. Raises RecipeError if the tokenizer forbids it."""
    if recipe.packed is None or tokenizer is None:
        return None
    columns = notes_chunks(recipe)
    try:
        ids = tokenizer.vocab_size, tokenizer.bos_id, tokenizer.eos_id
        return packed_format(recipe.packed, *ids, columns, recipe.LANE.writer.name == MASKED)
    except ValueError as error:
        raise RecipeError(f"packed: {error}") from error


def notes_chunks(recipe: Recipe) -> bool:
    """Whether a stage notes the chunks of documents, which gives their tokens columns. A stage that makes documents of
    the chunks (`emit: chunks`) notes none."""
    active = ((stage, params) for phase in PHASES for stage, params in recipe.active(phase))
    noting = (params for stage, params in active if any(note.name == CHUNKS for note in stage.notes))
    return any(getattr(params, "emit", "file") == "file" for params in noting)


def check_stage(stage: AnyStage, params: Any) -> None:
    """Call the stage's check; its ValueError or OSError ("field: …") becomes a RecipeError that names the section."""
    check = stage.check or stage.prepare
    if check is None:
        return
    try:
        check(params)
    except (ValueError, OSError) as error:
        message = str(error).removeprefix("location: ")  # of a store: no key of a recipe
        joint = "." if re.match(r"[a-z_]+(\.\w+)?: ", message) else ": "
        hint = f"; {stage.hint}" if stage.hint and "cannot be read" in message else ""
        raise RecipeError(f"{stage.key}{joint}{message}{hint}") from error


def kept_columns(recipe: Recipe) -> tuple[KeptColumn, ...]:
    """The columns for fields of records, of a corpus of texts. Raises ValueError where sources disagree."""
    return plan_columns(recipe.sources, recipe.provenance(), recipe.LANE.writer)
