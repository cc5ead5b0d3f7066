"""Deduplication: normalise sentences, hash spans of them, find the repeats, cut them out by byte offsets."""
