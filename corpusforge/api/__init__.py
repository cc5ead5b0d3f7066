"""What ``import corpusforge`` offers: one function a command, and the results they return."""
