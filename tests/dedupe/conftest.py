"""Stand-in until text.sentence_spans is there."""

import re

import numpy as np

from corpusforge import text

if not hasattr(text, "sentence_spans"):

    def sentence_spans(column):
        data, ends = text.text_bytes(column)
        starts, stops, offsets = [], [], [0]
        for i, value in enumerate(column.to_pylist()):
            for m in re.finditer(r"\S(?:[^.!?\n。]*[^\s.!?\n。])?[.!?。]*", value):
                starts.append(ends[i] + len(value[: m.start()].encode()))
                stops.append(ends[i] + len(value[: m.end()].encode()))
            offsets.append(len(starts))
        as_array = lambda v: np.array(v, np.int64)  # noqa: E731
        return text.Spans(data, as_array(starts), as_array(stops), as_array(offsets), ends[:-1])

    text.sentence_spans = sentence_spans
