"""Deduplication: find equal and similar lines, spans and documents, and cut or drop all copies but one."""
