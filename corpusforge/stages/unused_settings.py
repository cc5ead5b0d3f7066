"""Settings that nothing uses beside the others: what is asked for and would not happen is said.

Comes in: a recipe, and which settings were given on the command line. Goes out: an error, or lines to show. The one
decision: on the command line such a setting is a mistake and ends the run before it begins; a recipe may hold settings
for methods that are named another time, so there it is a line.
"""

from __future__ import annotations

from collections.abc import Mapping

from corpusforge import errors, sections
from corpusforge.sections import Recipe

_SETTINGS = sections.settings()


DECIDERS = {
    "vocab.model": "--model",
    "vocab.normalization": "--normalization",
    "instances.masking": "--masking",
    "instances.format": "--format",
}
"""Settings that decide whether others mean something, and their flags."""

_WORDPIECE = ("wordpiece", "wordpiece-likelihood")
_PIECES = ("unigram", "sentencepiece-bpe")

FOR: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "vocab.lowercase": (("vocab.model", (*_WORDPIECE, *_PIECES)), ("vocab.normalization", ("albert",))),
    "vocab.alphabet": (("vocab.model", _WORDPIECE),),
    "vocab.min_pair": (("vocab.model", ("wordpiece-likelihood",)),),
    "vocab.normalization": (("vocab.model", _PIECES),),
    "vocab.coverage": (("vocab.model", _PIECES),),
    "instances.copies": (("instances.masking", ("duplicated",)),),
    "instances.copies_redraw": (("instances.masking", ("duplicated",)),),
    "instances.pair_sampling": (("instances.format", ("segment-pair",)),),
    "instances.short_probability": (("instances.format", ("segment-pair", "sop")),),
    "instances.donor_megabytes": (("instances.format", ("segment-pair", "sentence-pair")),),
}
"""Settings of vocabularies and instances that are not for all, and what they are for."""

KEPT = ("vocab.adopt", "vocab.sample")
"""Settings of the vocabulary that mean something where one is taken over."""


READS: Mapping[str, tuple[str, ...]] = {
    "clean": ("input", "urls", "clean"),
    "dedupe": ("dedupe",),
    "train-vocab": ("vocab",),
    "build-instances": ("instances",),
    "pretrain": ("pretrain",),
    "evaluate": ("evaluate", "pretrain"),  # pretrain: device and threads
}
"""Sections that the command of one stage reads; `run` reads all."""


def check_read(command: str, given: Mapping[str, str]) -> None:
    """Raise `errors.RecipeInvalid` for a setting of a stage that the command does not carry out."""
    for key, flag in given.items():
        section, dot, _ = key.partition(".")
        if dot and command in READS and section not in READS[command]:
            reader = _or(tuple(name for name, sections in READS.items() if section in sections))
            what = f"{command} does not read [{section}], it is for {reader}"
            raise errors.RecipeInvalid(flag, what, f"give it to {reader}, or leave it out")


def check_given(made: Recipe, given: Mapping[str, str]) -> None:
    """Raise `errors.RecipeInvalid` for a setting given for nothing. ``given``: keys, and the flags they came by.

    Saying no to what is off anyway (``--no-signatures``) is no mistake.
    """
    _check_learning(made, given)
    for key, flag in given.items():
        for decider, values in FOR.get(key, ()):
            chosen = _value(made, decider)
            if chosen not in values and _value(made, key) is not False:
                what = f"the {decider.split('.')[1]} {chosen} does not use it; it is for {_or(values)}"
                raise errors.RecipeInvalid(flag, what, f"choose that with {DECIDERS[decider]}, or leave it out")
    for key, flag in given.items():
        if _is_unused(made, key) and _value(made, key) is not False:
            mend = f"add {_or(_SETTINGS[key].methods)} to --method, or leave it out"
            raise errors.RecipeInvalid(flag, f"the method {', '.join(made.dedupe.method)} does not use it", mend)


def _check_learning(made: Recipe, given: Mapping[str, str]) -> None:
    """Raise `errors.RecipeInvalid` for a setting of learning where a vocabulary is taken over."""
    if not made.vocab.adopt:
        return
    for key, flag in given.items():
        if key.startswith("vocab.") and key not in KEPT:
            what = "a vocabulary is taken over as it is (--from), nothing is learned"
            raise errors.RecipeInvalid(flag, what, "leave it out, or leave --from out")


def unused_lines(made: Recipe) -> list[str]:
    """A line for each setting of a recipe that is not the default and is not used.

    Raises `errors.RecipeInvalid` for an index: whoever names one believes that what it holds is dropped.
    """
    if made.dedupe.index and _is_unused(made, "dedupe.index"):
        what = f"the method is {', '.join(made.dedupe.method)}, which looks into no index"
        raise errors.RecipeInvalid("dedupe.index", what, "add documents to dedupe.method, or leave the index out")
    keys = [k for k, spec in _SETTINGS.items() if _is_unused(made, k) and _value(made, k) != spec.default]
    methods = ", ".join(made.dedupe.method)
    return [f"{k} is not used by {methods}; it is for {_or(_SETTINGS[k].methods)}" for k in keys]


def _is_unused(made: Recipe, key: str) -> bool:
    served = _SETTINGS[key].methods if key in _SETTINGS else ()
    return bool(served) and not set(served) & set(made.dedupe.method)


def _value(made: Recipe, key: str) -> object:
    section, _, name = key.partition(".")
    return getattr(getattr(made, section), name)


def _or(names: tuple[str, ...]) -> str:
    """
    >>> _or(("lines",)), _or(("lines", "exact-spans", "near-spans"))
    ('lines', 'lines, exact-spans or near-spans')
    """
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
