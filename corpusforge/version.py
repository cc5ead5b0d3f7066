"""The version of this package, the one place that states it: the build and the command line read it here."""

VERSION = "0.1.0"
