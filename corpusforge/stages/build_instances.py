"""The stage build-instances: documents and a vocabulary to training instances."""

from __future__ import annotations

import dataclasses
from typing import Any

from corpusforge import errors, recipe, shards
from corpusforge.sections import Recipe
from corpusforge.shards import Manifest
from corpusforge.stages import stage
from corpusforge.stages.output_folder import claim, digest_of
from corpusforge.stages.stage import Execution, Outcome


def build_instances(made: Recipe, upstream: str, vocab_folder: str, output: str, execution: Execution) -> Outcome:
    """Encode documents and build instances: ``train/``, ``heldout/``, and the vocabulary beside them in ``vocab/``."""
    from corpusforge.instances.measure import judge_whole
    from corpusforge.tokens.families import load_vocab

    _check_shares(made)
    engine = stage.engine_of(execution)
    before, units = stage.upstream_units(upstream, "documents")
    if not before.rows["documents"]:
        raise errors.InputMissing(upstream, "no documents are left", "look at its rejects: corpusforge inspect")
    vocab = load_vocab(vocab_folder)
    section = {
        "instances": recipe.digested(made.instances, mask_lexicon=_lexicon_digest(vocab, made)),
        "seed": made.seed,
    }
    above = {"documents": before.content["documents"], "vocab": vocab.digest}
    how: dict[str, Any] = {"reads": [upstream, vocab_folder], "cuts": stage.cuts_of(before, "documents")}
    with claim(output, "build-instances", section, above, overwrite=execution.overwrite, **how) as claimed:
        if manifest := claimed.finished():
            return Outcome(output, manifest, skipped=True)
        from corpusforge.instances.build import run

        with stage.timed(claimed, execution) as measured:
            for name, data in vocab.save_files().items():
                shards.write_bytes(shards.join(output, f"vocab/{name}"), data)
            encoded = run(engine, made.instances, made.seed, vocab, units, output, execution.progress)
        stage.check_units(output, len(units))
        result = stage.manifest_of(claimed, units=len(units))
        judged = _judged(made, vocab, result, output)
        parts = {split: judged[split] for split in ("train", "heldout")}
        judge_whole(parts, where=output, documents=before.rows["documents"], encoded=encoded, rows=result.rows)
        result = dataclasses.replace(result, statistics={**judged, "encoded": encoded})
        _write_dataset_files(made, result, output)
        return stage.saved(claimed, result, measured)


def _lexicon_digest(vocab: Any, made: Recipe) -> str:
    """The content of the lexicon, which decides masks, and not its path; "" for none. Complains about bad settings."""
    from corpusforge.tokens.mask_lexicon import joiner_of

    return getattr(joiner_of(vocab, made.instances), "digest", "")


def _check_shares(made: Recipe) -> None:
    """Shares of masked tokens add up to at most 1: the rest is kept as it is."""
    settings = made.instances
    total = settings.mask_share + settings.random_share
    if total > 1 + 1e-9:
        what = f"mask_share and random_share are {total:g} together"
        raise errors.RecipeInvalid("instances.random_share", what, "lower one of them: together they are at most 1")


def _judged(made: Recipe, vocab: Any, result: Manifest, output: str) -> dict[str, Any]:
    """The build report: summed statistics with their ratios, after the invariants held."""
    from corpusforge.instances.build import settings_of
    from corpusforge.instances.measure import judge
    from corpusforge.instances.splits import SPLITS

    settings = settings_of(vocab, made.instances, made.seed)
    judged = {}
    for split in SPLITS:
        found = result.statistics.get(split, {})
        ratios = judge(
            found,
            where=f"{output} ({split})",
            length=made.instances.length,
            mask=settings.mask,
            words=len(settings.specials.words()),
        )
        judged[split] = {**found, "ratios": ratios}
    return {**result.statistics, **judged}


def _write_dataset_files(made: Recipe, result: Manifest, output: str) -> None:
    from corpusforge.instances.dataset_card import card_body, card_title, write_dataset_card, write_dataset_info

    for split in ("train", "heldout"):
        write_dataset_info(output, split, result.shards[split])
    body = card_body(result, digest_of(result.content))
    write_dataset_card(output, card_title(made.name, made.instances.format), result.shards, body)
