"""The steps of a run from its settings, in the one order: URLs, packs, language, bad words, then what comes last.

The order of packs is the recipe's; the rest is that of C4 (tensorflow-datasets 4.9.10, ``text/c4.py``): language and
bad words are looked at in text that is clean already.
"""

from __future__ import annotations

from collections.abc import Sequence

from corpusforge.clean.apply import Cleaner
from corpusforge.clean.badwords import BadwordsStep
from corpusforge.clean.language import LanguageStep
from corpusforge.clean.pack import Pack
from corpusforge.clean.packs import Settings, load_rules, step_of
from corpusforge.clean.rules import Rules
from corpusforge.clean.step import Step


def cleaner_of(
    *packs: Pack,
    language: str = "en",
    detector: str = "langdetect",
    min_language_probability: float = 0.99,
    sentences: str = "punkt",
    badwords: str = "fetched",
    first: Sequence[Step] = (),
    last: Sequence[Step] = (),
) -> Cleaner:
    """The cleaner of some packs and settings.

    ``language``: "" looks at no language, and then bad words are those of the language a document came with.
    ``detector``: see `language`; ``sentences``: "punkt" or "builtin"; ``badwords``: "fetched", "off", a folder.
    ``first``, ``last``: steps before and behind all others.
    """
    steps = [*first, *(step_of(pack, Settings(sentences, badwords)) for pack in packs)]
    if language:
        steps.append(LanguageStep(language, detector, min_language_probability))
    rules = _rules_of_badwords(packs)
    if badwords != "off" and rules.badword_fraction:
        steps.append(BadwordsStep(badwords, language, rules))
    return Cleaner((*steps, *last))


def _rules_of_badwords(packs: Sequence[Pack]) -> Rules:
    """What is said about bad words by the first pack that says anything; else by the default pack."""
    return next((pack for pack in packs if isinstance(pack, Rules)), None) or load_rules("c4-tfds-3.1")
