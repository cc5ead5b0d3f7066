"""The documentation site: ``make docs`` builds it from the pages of this folder, without a network.

The pages are Markdown that reads well on GitHub too. Where one has the comment ``<!-- generated: NAME -->``, the site
has what `generated` writes there, from the settings, the commands and the docstrings of the package.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import generated  # noqa: E402

from corpusforge.version import VERSION  # noqa: E402

project = "CorpusForge"
version = release = VERSION
copyright = "the CorpusForge authors, Apache-2.0"
language = "en"

extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]
suppress_warnings = ["mystnb.unknown_mime_type"]  # plots: notebooks draw them, the site shows their pictures
nb_execution_mode = "off"  # notebooks are shown with the output they were saved with; tests run them
myst_heading_anchors = 4  # the anchors that GitHub gives headings

smartquotes = False  # flags begin with two hyphens
highlight_language = "text"

default_role = "py:obj"  # docstrings write `names` so: a link where the site has the name
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
add_module_names = False

html_theme = "furo"
html_title = f"CorpusForge {VERSION}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False


def setup(app: Any) -> None:
    """Connect what `generated` does to a page, a docstring and a signature."""
    app.connect("source-read", generated.fill)
    app.connect("autodoc-process-docstring", generated.tidy_docstring)
    app.connect("autodoc-skip-member", generated.skip_fields)
    app.connect("autodoc-process-signature", generated.shorten_signature)
