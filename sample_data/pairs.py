"""Minimal pairs in BLiMP's file format, made from small grammars written for this project.

Goes out: ``{paradigm: rows}``; a row has the fields of BLiMP (Warstadt et al., TACL 2020): the good and the bad
sentence differ in one thing only. The words are those of the articles, so that a model trained on them knows them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

PAIRS = 30
Pair = tuple[str, str]
_NOUNS = (
    ("baker", "bakers"),
    ("child", "children"),
    ("teacher", "teachers"),
    ("bird", "birds"),
    ("farmer", "farmers"),
    ("woman", "women"),
    ("sailor", "sailors"),
    ("tree", "trees"),
    ("boat", "boats"),
    ("neighbour", "neighbours"),
)
_VERBS = (("is", "are"), ("has changed", "have changed"), ("was", "were"))
_ENDS = {"is": ("old", "beautiful"), "has changed": ("again", "very little"), "was": ("in the garden", "late")}
_THINGS = (
    ("book", "books"),
    ("loaf", "loaves"),
    ("map", "maps"),
    ("letter", "letters"),
    ("bridge", "bridges"),
    ("clock", "clocks"),
    ("house", "houses"),
    ("apple", "apples"),
)
_PEOPLE = (("woman", "herself"), ("man", "himself"), ("girl", "herself"), ("boy", "himself"))
_MANY = ("children", "women", "farmers", "sailors")
_ACTS = ("saw", "asked", "washed", "helped", "blamed")
_PAST = (("gone", "went"), ("seen it", "saw it"), ("written", "wrote"), ("taken it", "took it"), ("begun", "began"))


def subject_verb_agreement() -> Iterator[Pair]:
    """*The baker is old* against *The baker are old*."""
    for (one, many), (single, plural), end in itertools.product(_NOUNS, _VERBS, (0, 1)):
        tail = _ENDS[single][end]
        yield f"The {one} {single} {tail}.", f"The {one} {plural} {tail}."
        yield f"The {many} {plural} {tail}.", f"The {many} {single} {tail}."


def distractor_agreement() -> Iterator[Pair]:
    """The nearest noun has the other number: *The baker near the boats is old*."""
    for (one, many), (other, others), (single, plural) in itertools.product(_NOUNS, _THINGS, _VERBS):
        tail = _ENDS[single][0]
        yield f"The {one} near the {others} {single} {tail}.", f"The {one} near the {others} {plural} {tail}."
        yield f"The {many} near the {other} {plural} {tail}.", f"The {many} near the {other} {single} {tail}."


def determiner_noun_agreement() -> Iterator[Pair]:
    """*this book* against *this books*."""
    for (person, _), (one, many), verb in itertools.product(_NOUNS[:7], _THINGS, ("bought", "saw")):
        yield f"The {person} {verb} this {one}.", f"The {person} {verb} this {many}."
        yield f"The {person} {verb} these {many}.", f"The {person} {verb} these {one}."


def anaphor_gender_agreement() -> Iterator[Pair]:
    """*The woman saw herself* against *The woman saw himself*."""
    for (person, own), act, when in itertools.product(_PEOPLE, _ACTS, ("", " in the morning", " again")):
        other = "himself" if own == "herself" else "herself"
        yield f"The {person} {act} {own}{when}.", f"The {person} {act} {other}{when}."


def anaphor_number_agreement() -> Iterator[Pair]:
    """*The children helped themselves* against *The children helped herself*."""
    for people, act, when in itertools.product(_MANY, _ACTS, ("", " at last")):
        yield f"The {people} {act} themselves{when}.", f"The {people} {act} itself{when}."


def npi_licensing() -> Iterator[Pair]:
    """*ever* needs a negation: *Nobody has ever gone* against *Everybody has ever gone*."""
    for (done, _), (one, _), good in itertools.product(_PAST, _NOUNS[:6], ("No", "Hardly any")):
        yield f"{good} {one} has ever {done}.", f"Every {one} has ever {done}."


def irregular_participles() -> Iterator[Pair]:
    """*has gone* against *has went*."""
    for (one, many), (done, past) in itertools.product(_NOUNS[:7], _PAST):
        yield f"The {one} has {done}.", f"The {one} has {past}."
        yield f"The {many} have {done}.", f"The {many} have {past}."


def word_order() -> Iterator[Pair]:
    """The article stands before the noun: *the baker saw the map* against *baker the saw the map*."""
    for (one, _), (thing, _), verb in itertools.product(_NOUNS[:7], _THINGS, ("saw", "had")):
        yield f"The {one} {verb} the {thing}.", f"The {one} {verb} {thing} the."


PARADIGMS = {
    subject_verb_agreement: ("morphology", "subject_verb_agreement"),
    distractor_agreement: ("morphology", "subject_verb_agreement"),
    determiner_noun_agreement: ("morphology", "determiner_noun_agreement"),
    anaphor_gender_agreement: ("morphology", "anaphor_agreement"),
    anaphor_number_agreement: ("morphology", "anaphor_agreement"),
    npi_licensing: ("semantics", "npi_licensing"),
    irregular_participles: ("morphology", "irregular_forms"),
    word_order: ("syntax", "word_order"),
}


def minimal_pairs() -> dict[str, list[dict[str, object]]]:
    """``PAIRS`` pairs a paradigm, spread evenly over all that its grammar can say."""
    found = {}
    for grammar, (field, term) in PARADIGMS.items():
        name = grammar.__name__
        every = list(grammar())
        chosen = [every[k * len(every) // PAIRS] for k in range(PAIRS)]
        found[name] = [
            {
                "sentence_good": good,
                "sentence_bad": bad,
                "field": field,
                "linguistics_term": term,
                "UID": name,
                "simple_LM_method": True,
                "one_prefix_method": False,
                "two_prefix_method": False,
                "lexically_identical": False,
                "pairID": str(number),
            }
            for number, (good, bad) in enumerate(chosen)
        ]
    return found
