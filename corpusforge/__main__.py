"""``python -m corpusforge``: the command line, also for ``torchrun -m corpusforge pretrain``."""

from corpusforge.cli import main

main()
