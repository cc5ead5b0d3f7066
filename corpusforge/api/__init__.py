"""What ``import corpusforge`` offers: one function per command, and the results they return."""
