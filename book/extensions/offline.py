"""Everything a page loads comes from the site itself, also when opened from disk.

What Jupyter Book adds from other hosts is left out in ``_config.yml``: thebe by its
list of extensions, MathJax by its maths renderer, and the widgets' scripts by name.
This extension adds the book's own assets.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config
    from sphinx.util.typing import ExtensionMetadata

ASSETS = Path(__file__).parent.parent / "assets"


def use_own_assets(app: Sphinx, config: Config) -> None:
    """Point to the assets by full path: the source folder may be anywhere."""
    config.html_static_path = [*config.html_static_path, str(ASSETS)]
    config.html_favicon = str(ASSETS / "favicon.svg")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the assets before Sphinx checks that they exist."""
    app.connect("config-inited", use_own_assets)
    app.add_css_file("site.css")
    return {
        "version": "1",
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
