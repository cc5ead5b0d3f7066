"""CorpusForge: from raw web pages to a pretrained encoder."""

__version__ = "0.1.0"
