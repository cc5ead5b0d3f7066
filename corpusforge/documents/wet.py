"""WET: text that a crawler has already taken out of pages, as WARC `conversion` records.

Comes in: the block of such a record. Goes out: a document, its text as it stands. The one decision: records are cut by
their Content-Length, as the WARC standard has it (ISO 28500). The C4 code of tensorflow-datasets cuts at lines that
read ``WARC/1.0``, strips lines and drops those that begin with WARC or Content-; where that matters it is a rule of a
pack, not of the reader.
"""

from __future__ import annotations

from corpusforge.documents import encodings, pages
from corpusforge.documents.pages import Origin
from corpusforge.documents.records import Rows


def add_conversion(rows: Rows, block: bytes, origin: Origin) -> None:
    """Add a conversion record: a document if it is plain text, else a reject."""
    if origin.media_type not in ("", "text/plain"):
        pages.reject(rows, origin, "record:content-type", origin.media_type)
    elif not block.strip():
        pages.reject(rows, origin, "record:empty-body", None)
    else:
        pages.add_text(rows, encodings.decode(block, "utf-8"), origin)
