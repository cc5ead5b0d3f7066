"""Warnings from a stage's counts: everything or nothing dropped, the wrong language, a vocabulary that does not fit.

The statistics of a finished stage, or a plan, become lines for a person. None of them ends a run, since the settings
may be meant so. The one error: an input of which not one record could be read, raised after all is written that shows
why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from corpusforge import errors, shards
from corpusforge.report.gather import CleaningStep, step_order, steps_of
from corpusforge.sections.vocab import SENTENCEPIECE
from corpusforge.shards import Manifest, Tallies

if TYPE_CHECKING:
    import pyarrow as pa

    from corpusforge.documents.plan import Unit

UNKNOWN_BUILT = 0.05
"""More unknown tokens than this in instances trigger a warning (own choice: vocabularies of every family, learned
from the same English text, have below 0.1 %; with one of another language most tokens are unknown)."""

UNKNOWN_LEARNED = 0.01
"""The same in the sample of a vocabulary, which could still be learned again."""

COVERED = 0.99
"""Fewer characters with a token than this trigger a warning (sentencepiece advises 0.9995 for Chinese and Japanese)."""

BUDGET_USED = 0.6
"""Use of less of the mask budget triggers a warning (own measurement: English whole words use over 90 %)."""

BARE = 0.1
"""More instances without a single mask than this trigger a warning."""

EPOCHS = 100
"""Reading a corpus more often than this triggers a warning: BERT read its corpus about 40 times (Devlin et al. 2019,
appendix A.2), and the value of more epochs decays to nothing (Muennighoff et al. 2023, arXiv 2305.16264, abstract)."""


def of_stage(folder: str, manifest: Manifest) -> list[str]:
    """Warnings from the counts of a finished stage."""
    by_stage = {"train-vocab": of_vocabulary, "build-instances": of_instances, "pretrain": of_training}
    if manifest.stage in by_stage:
        return by_stage[manifest.stage](manifest)
    if manifest.stage not in ("clean", "dedupe"):
        return []
    # A corpus without duplicates is usual.
    steps = steps_of(manifest.statistics, step_order(manifest))
    lines = of_shares(manifest.statistics, nothing=manifest.stage == "clean" and bool(steps))
    if any(step.name == "language" and step.dropped > MOST for step in steps):
        return lines + of_steps(steps, manifest.recipe["clean"]["language"], languages_of(folder, manifest))
    return lines + of_steps(steps, "", {})


def of_vocabulary(manifest: Manifest) -> list[str]:
    """A warning where a vocabulary does not fit its text, with the flag that would fix it."""
    statistics, section = manifest.statistics, manifest.recipe.get("vocab", {})
    unknown, covered = statistics.get("unknown_rate", 0.0), statistics.get("character_coverage", 1.0)
    if not statistics.get("sample_tokens") or (unknown <= UNKNOWN_LEARNED and covered >= COVERED):
        return []
    warning = (
        f"warning: of the sample {unknown:.2%} of tokens are unknown, and {covered:.2%} of characters have a token: "
    )
    return [warning + _mend(section, statistics)]


def _mend(section: Mapping[str, Any], statistics: Mapping[str, Any]) -> str:
    """
    >>> _mend({"model": "wordpiece", "alphabet": 1000}, {"characters": 1000})
    'raise --alphabet, as 1,000 characters are kept, and --size with it'
    """
    if section.get("adopt"):
        return "the adopted vocabulary does not fit this text; take another, or learn one"
    if section.get("model") in SENTENCEPIECE:
        return "raise --coverage and --size"
    kept, most = statistics.get("characters", 0), section.get("alphabet", 0)
    if kept >= most:
        return f"raise --alphabet, as {most:,} characters are kept, and --size with it"
    if statistics.get("sample") == "not learned from":
        return "it does not fit the text of --sample; learn from text that is like it"
    return "lower --min-count, or give more text: these characters were in none of the words it learned from"


def of_instances(manifest: Manifest) -> list[str]:
    """Warnings where the vocabulary or the mask unit does not fit the text."""
    encoded, section = manifest.statistics.get("encoded", {}), manifest.recipe.get("instances", {})
    lines = []
    unknown = encoded.get("unknown_tokens", 0) / max(encoded.get("tokens", 0), 1)
    if unknown > UNKNOWN_BUILT:
        what = f"warning: {unknown:.1%} of tokens are unknown: the vocabulary does not fit the text"
        lines.append(f"{what}; learn one from these documents with train-vocab, or name another with --vocab")
    if encoded.get("units_joined") == 0:
        by = "segmenter" if section.get("mask_segmenter") else "lexicon"
        lines.append(f"warning: --mask-{by} joins no words: no phrase of it occurs under this tokenization")
    # Of dynamic masks only the held-out part has counts.
    masked = [part for part in (manifest.statistics.get(split, {}) for split in ("train", "heldout")) if part]
    return lines + of_masks(next((part["ratios"] for part in masked if part.get("masked")), {}), section)


def of_masks(ratios: Mapping[str, float], section: Mapping[str, Any]) -> list[str]:
    """A warning where words are too long to be masked.

    >>> of_masks({"masked_of_budget": 0.95, "instances_unmasked": 0.01}, {"mask_unit": "span"})
    []
    """
    used, bare = ratios.get("masked_of_budget", 1.0), ratios.get("instances_unmasked", 0.0)
    if section.get("mask_unit", "token") == "token" or (used >= BUDGET_USED and bare <= BARE):
        return []
    warning = (
        f"warning: only {used:.0%} of the budget is masked, and {bare:.0%} of instances have no mask, as words are too"
    )
    return [f"{warning} long; take --mask-unit token, or a vocabulary that sets characters apart (--model wordpiece)"]


def of_plan(plan: Mapping[str, Any]) -> list[str]:
    """A warning where a training would read its corpus too often."""
    if plan["epochs"] <= EPOCHS:
        return []
    warning = (
        f"warning: {plan['steps']:,} steps would read the {plan['instances']:,} instances {plan['epochs']:,.0f} times"
    )
    return [f"{warning}: too many for this corpus; set fewer with --steps, or a time with --budget"]


def of_training(manifest: Manifest) -> list[str]:
    """A warning where a training ends above the unigram loss: the held-out loss where it was measured."""
    statistics = manifest.statistics
    which, reference = "held-out MLM loss", "unigram loss of the same tokens"
    loss, line = statistics.get("heldout_loss"), statistics.get("heldout_unigram")
    if loss is None or line is None:
        which, reference = "MLM loss", "unigram entropy of the corpus"
        loss, line = statistics.get("mlm_loss"), statistics.get("unigram")
    if loss is None or line is None or loss < line:
        return []
    warning = f"warning: the {which} ({loss:.2f}) is not below the {reference} ({line:.2f})"
    return [
        f"{warning}: the model has learned less than unigram frequencies; take more steps, or another learning rate"
    ]


MEGABYTE = 1 << 20
WORTH = 4 * MEGABYTE
"""Input a worker below which a second one brings nothing (own measurement: starting two takes 2.4 s, in which one
cleans 3.7 MB of JSONL three times over)."""

MOST = 0.9
"""A larger share dropped, of the documents or of the text, triggers a warning (own choice)."""

LANGUAGE = "page:language"
LANGUAGE_ROWS = 10_000
"""Pages in another language that are read to name it: enough to be sure, and read in a second."""


def dropped(statistics: Mapping[str, Any], what: str) -> float:
    """Share of the documents or of the text that was dropped.

    >>> dropped({"documents_in": 4, "documents_out": 1}, "documents")
    0.75
    """
    before = statistics.get(f"{what}_in", 0)
    return 1 - statistics.get(f"{what}_out", 0) / before if before else 0.0


def of_shares(statistics: Mapping[str, Any], *, nothing: bool = True) -> list[str]:
    """Warnings about the shares of documents and of text that were dropped. ``nothing``: also where none was.

    >>> of_shares({"documents_in": 0})
    ['warning: there are no documents in the input; look at the rejects of the stage before']
    >>> of_shares({"documents_in": 100, "documents_out": 5, "text_bytes_in": 100, "text_bytes_out": 40})
    ['warning: 95% of documents and 60% of text are dropped; look at the reasons above']
    """
    if not statistics.get("documents_in"):
        return ["warning: there are no documents in the input; look at the rejects of the stage before"]
    documents, text = dropped(statistics, "documents"), dropped(statistics, "text_bytes")
    if nothing and max(documents, text) <= 0:
        return ["warning: nothing is dropped; are the rules meant for this input?"]
    if max(documents, text) > MOST:
        return [f"warning: {documents:.0%} of documents and {text:.0%} of text are dropped; look at the reasons above"]
    return []


def of_steps(steps: Sequence[CleaningStep], language: str, languages: Mapping[str, int]) -> list[str]:
    """Warnings for steps that drop nearly all their input. ``languages``: as `count_languages` has them."""
    lines = []
    for step in steps:
        if step.dropped > MOST:
            warning = f"warning: {step.name} drops {step.dropped:.0%} of the documents that reach it"
            lines.append(warning + (_of_language(language, languages) if step.name == "language" else ""))
    return lines


def _of_language(wanted: str, languages: Mapping[str, int]) -> str:
    """The languages of the pages that were not in the language requested, and the flag to change.

    >>> _of_language("en", {"zh": 9, "ja": 1})
    '; most often they are zh (9 of 10): --language zh keeps these'
    """
    if not languages:
        return ""
    best = max(languages, key=lambda name: (languages[name], name))
    often = f"; most often they are {best} ({languages[best]:,} of {sum(languages.values()):,})"
    if best == wanted.split("-")[0]:
        return f"{often}, but not surely enough: look at --min-language-probability"
    return f"{often}: --language {best} keeps these"


def count_languages(rejects: pa.RecordBatch) -> Counter[str]:
    """Languages named in the details of a REJECTS batch, without their regions: ``"zh-cn 0.99"`` is zh."""
    import pyarrow as pa
    import pyarrow.compute as pc

    details = rejects["detail"].filter(pc.equal(rejects["reason"].cast(pa.string()), LANGUAGE))
    names = pc.struct_field(pc.extract_regex(details, "^(?P<name>[a-z]+)[-a-z]* [0-9.]+$"), "name").drop_null()
    return Counter({row["values"]: row["counts"] for row in pc.value_counts(names).to_pylist()})


def languages_of(folder: str, manifest: Manifest) -> Counter[str]:
    """The languages of the first `LANGUAGE_ROWS` such pages in a folder's rejects; none if it kept no rejects."""
    languages: Counter[str] = Counter()
    for path in manifest.paths(folder, "rejects"):
        for batch in shards.read_shard(path):
            languages += count_languages(batch)
            if languages.total() >= LANGUAGE_ROWS:
                return languages
    return languages


def of_units(units: Sequence[Unit], workers: int) -> str:
    """A line where the input is cut into fewer units than there are workers, and smaller units would help; else "".

    Not below `WORTH` bytes a worker: that is done before a second process has started.
    """
    from corpusforge.documents.plan import is_splittable

    parts = [part for unit in units for part in unit.parts]
    size = sum(part.size for part in parts) // max(workers, 1)
    if len(units) >= workers or size < WORTH:
        return ""
    unit = size // MEGABYTE * MEGABYTE
    most = sum(-(-p.size // unit) if p.size > unit and is_splittable(p.path, p.format) else 1 for p in parts)
    if most <= len(units):
        return ""
    what = f"the input makes {len(units)} work unit{'s' if len(units) > 1 else ''} for {workers} workers"
    return f"{what}; to use more of them: --set input.unit_megabytes={unit // MEGABYTE}"


def check_read(paths: Sequence[str], statistics: Mapping[str, Any], tallies: Tallies, *, rejects: str = "") -> None:
    """Raise `errors.InputUnreadable` where not one document was read. ``rejects``: the folder that holds the records.

    >>> check_read(["a.jsonl"], {"records_in": 7, "documents_in": 0}, {"record:bad-json": {"rows": 7, "bytes": 9}})
    Traceback (most recent call last):
        ...
    corpusforge.errors.InputUnreadable: a.jsonl: no document could be read (7 record:bad-json); check the files and --format
    """  # noqa: E501
    if statistics.get("documents_in"):
        return
    where = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    if not statistics.get("records_in"):
        raise errors.InputUnreadable(where, "no document in the input", "name files that hold records")
    most = sorted(tallies.items(), key=lambda item: (-item[1]["rows"], item[0]))
    why = ", ".join(f"{counts['rows']:,} {reason}" for reason, counts in most[:3])
    look = f"look at them in {rejects}, and " if rejects else ""
    raise errors.InputUnreadable(where, f"no document could be read ({why})", f"{look}check the files and --format")
