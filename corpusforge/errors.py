"""Every error a person can cause, one class per cause.

A message has three parts: *where* (file, key, shard, row), *what* is wrong there, and how to *mend* it.
The command line prints it as one line and exits with 1. A malformed raw record is never an exception: it is
counted under a reason and kept in the rejects.
"""

from __future__ import annotations


class CorpusForgeError(Exception):
    """Base of all errors shown to a person as one line.

    >>> print(InputMissing("pages/*.warc.gz", "no file matches", "check the path or the glob"))
    pages/*.warc.gz: no file matches; check the path or the glob
    """

    def __init__(self, where: str, what: str, mend: str) -> None:
        self.where, self.what, self.mend = where, what, mend
        super().__init__(f"{where}: {what}; {mend}")

    def __reduce__(self) -> tuple[type[CorpusForgeError], tuple[str, str, str]]:
        # Exceptions travel between worker processes; the default reduction would pass one argument.
        return type(self), (self.where, self.what, self.mend)


class InputMissing(CorpusForgeError):
    """A named input file, folder or glob does not exist or holds nothing readable."""


class InputUnreadable(CorpusForgeError):
    """An input as a whole cannot be read in the requested format."""


class OutputTaken(CorpusForgeError):
    """The output folder already holds something else."""


class RecipeInvalid(CorpusForgeError):
    """A recipe, a flag or a rule pack has an unknown key or an unacceptable value."""


class FilterFailed(CorpusForgeError):
    """A filter of the user's own raised, returned what it must not, or cannot be sent to workers or digested."""


class KeywordInvalid(CorpusForgeError, TypeError):
    """A keyword of a function of `corpusforge` that it does not have."""


class ResourceMissing(CorpusForgeError):
    """A word list, sentence model or other fetched resource is not on this machine."""


class ExtraMissing(CorpusForgeError):
    """An optional part of CorpusForge is not installed."""


class ManifestInvalid(CorpusForgeError):
    """A manifest, shard or vocabulary is missing, incomplete or does not match its digest."""


class StageMismatch(CorpusForgeError):
    """Two stages do not fit together (a vocabulary and its instances, a checkpoint and its data)."""


class RunnerRefused(CorpusForgeError):
    """A Beam runner that is unknown, not installed, or known to lose data."""


class InvariantBroken(CorpusForgeError):
    """A build found something that must never happen; its output does not count as finished."""


class WorkerLost(CorpusForgeError):
    """A worker process was killed from outside."""


class TrainingStopped(CorpusForgeError):
    """Training cannot continue (NaN loss, no valid checkpoint, no data)."""
