"""The stage build-instances: documents and a vocabulary to training instances."""

from __future__ import annotations

import dataclasses
from typing import Any

from corpusforge import errors, shards
from corpusforge.recipe import digested
from corpusforge.sections import Recipe
from corpusforge.shards import Manifest
from corpusforge.stages import stage
from corpusforge.stages.output_folder import claim, digest_of
from corpusforge.stages.stage import Execution, Outcome


def build_instances(recipe: Recipe, upstream: str, vocab_folder: str, output: str, execution: Execution) -> Outcome:
    """Encode documents and build instances: ``train/``, ``heldout/``, and the vocabulary beside them in ``vocab/``."""
    from corpusforge.tokens.families import load_vocab

    _check_shares(recipe)
    engine = stage.engine_of(execution)
    before, units = stage.upstream_units(upstream, "documents")
    if not before.rows["documents"]:
        raise errors.InputMissing(upstream, "no documents are left", "look at its rejects: corpusforge inspect")
    vocab = load_vocab(vocab_folder)
    section = {
        "instances": digested(recipe.instances, mask_lexicon=_lexicon_digest(vocab, recipe)),
        "seed": recipe.seed,
    }
    above = {"documents": before.content["documents"], "vocab": vocab.digest}
    how: dict[str, Any] = {"reads": [upstream, vocab_folder], "cuts": stage.cuts_of(before, "documents")}
    with claim(output, "build-instances", section, above, overwrite=execution.overwrite, **how) as claimed:
        if manifest := claimed.finished():
            return Outcome(output, manifest, skipped=True)
        from corpusforge.instances.build import run
        from corpusforge.instances.measure import judge_whole

        with stage.timed(claimed, execution) as measured:
            for name, data in vocab.save_files().items():
                shards.write_bytes(shards.join(output, f"vocab/{name}"), data)
            encoded = run(engine, recipe.instances, recipe.seed, vocab, units, output, execution.progress)
        stage.check_units(output, len(units))
        result = stage.manifest_of(claimed, units=len(units))
        parts = _checked_statistics(recipe, vocab, result, output)
        judge_whole(parts, where=output, documents=before.rows["documents"], encoded=encoded, rows=result.rows)
        result = dataclasses.replace(result, statistics={**result.statistics, **parts, "encoded": encoded})
        _write_dataset_files(recipe, result, output)
        return stage.finish(claimed, result, measured)


def _lexicon_digest(vocab: Any, recipe: Recipe) -> str:
    """The digest of the lexicon's content; "" for none. Raises what `joiner_of` raises."""
    from corpusforge.tokens.mask_lexicon import joiner_of

    return getattr(joiner_of(vocab, recipe.instances), "digest", "")


def _check_shares(recipe: Recipe) -> None:
    """Raise `errors.RecipeInvalid` where the shares of masked tokens add up to more than 1."""
    settings = recipe.instances
    total = settings.mask_share + settings.random_share
    if total > 1 + 1e-9:
        what = f"mask_share and random_share are {total:g} together"
        raise errors.RecipeInvalid("instances.random_share", what, "lower one of them: together they are at most 1")


def _checked_statistics(recipe: Recipe, vocab: Any, result: Manifest, output: str) -> dict[str, Any]:
    """The statistics of both parts with their ratios. Raises where an invariant is violated."""
    from corpusforge.instances.build import settings_of
    from corpusforge.instances.measure import judge
    from corpusforge.instances.splits import SPLITS

    settings = settings_of(vocab, recipe.instances, recipe.seed)
    parts = {}
    for split in SPLITS:
        counts = result.statistics.get(split, {})
        ratios = judge(
            counts,
            where=f"{output} ({split})",
            length=recipe.instances.length,
            mask=settings.mask,
            words=len(settings.specials.words()),
        )
        parts[split] = {**counts, "ratios": ratios}
    return parts


def _write_dataset_files(recipe: Recipe, result: Manifest, output: str) -> None:
    from corpusforge.instances.dataset_card import card_body, card_title, write_dataset_card, write_dataset_info
    from corpusforge.instances.splits import SPLITS

    for split in SPLITS:
        write_dataset_info(output, split, result.shards[split])
    body = card_body(result, digest_of(result.content))
    write_dataset_card(output, card_title(recipe.name, recipe.instances.format), result.shards, body)
