"""The line: stages in order, manifest in, manifest out, skip and resume."""
