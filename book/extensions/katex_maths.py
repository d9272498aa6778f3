r"""Maths as HTML and MathML, made by KaTeX while the book is built.

A page gets no script for its maths.  Numbers, labels and ``{eq}`` references are
Sphinx's own.  TeX that KaTeX refuses is a warning, which ``-W`` turns into a failed
build.  There are no macros, and ``\label`` belongs to Sphinx: ``$$...$$ (eq-name)``.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from docutils import nodes
from py_mini_racer import MiniRacer
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.domains.math import MathDomain
    from sphinx.util.typing import ExtensionMetadata
    from sphinx.writers.html5 import HTML5Translator

VERSION = "0.19.1"
SCRIPT = Path(__file__).parent / "katex" / "katex.min.js"
STYLE = "katex/katex.min.css"
# The two fonts that nearly every equation needs; without them lines move on arrival.
FONTS = ("KaTeX_Main-Regular", "KaTeX_Math-Italic")

RENDER = r"""
function render(tex, displayMode) {
  const options = {displayMode, output: "htmlAndMathml", strict: "error",
                   throwOnError: true, trust: false};
  try {
    const html = katex.renderToString(tex, options);
    if (html.includes("eqn-num"))
      return {error: "this environment numbers its own lines; " +
                     "write aligned or gathered, and let Sphinx number it"};
    return {html};
  } catch (problem) {
    return {error: problem.message};
  }
}
"""
# Browsers refuse to preload a font for a page that was opened from disk.
PRELOAD = """
<script>
if (location.protocol !== "file:") for (const href of {fonts})
  document.head.append(Object.assign(document.createElement("link"),
    {{rel: "preload", as: "font", type: "font/woff2", crossOrigin: "", href}}));
</script>
"""

logger = logging.getLogger(__name__)


@cache
def katex(process: int) -> MiniRacer:
    """Return KaTeX for this process: V8 does not survive a fork."""
    context = MiniRacer()
    context.eval(SCRIPT.read_text(encoding="utf-8") + RENDER)
    return context


def render(writer: HTML5Translator, node: nodes.Element, display: bool) -> str:
    """Return the node's TeX as HTML, or warn and return the TeX itself."""
    tex = node.astext()
    result = katex(os.getpid()).call("render", tex, display)
    if "html" in result:
        return str(result["html"])
    label = node.get("label")
    what = f"equation {label!r}" if label else "maths"
    # KaTeX underlines the culprit with combining marks, which terminals garble.
    why = result["error"].replace("\N{COMBINING LOW LINE}", "")
    place = position(node)
    logger.warning("%s%s: %s\n    %s", what, place, why, tex.strip(), location=node)
    return f"<code>{writer.encode(tex)}</code>"


def position(node: nodes.Node | None) -> str:
    """Say in which cell a node is: MyST-NB counts 10,000 lines for each."""
    while node is not None and node.line is None:
        node = node.parent
    if node is None or node.line is None or node.line < 10_000:
        return ""
    cell, line = divmod(node.line, 10_000)
    return f" (cell {cell}, line {line})"


def visit_inline(writer: HTML5Translator, node: nodes.math) -> None:
    """Write maths within a line."""
    writer.body.append(writer.starttag(node, "span", "", CLASS="math notranslate"))
    writer.body.append(render(writer, node, display=False) + "</span>")
    raise nodes.SkipNode


def visit_display(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Write maths on a line of its own, with Sphinx's number when it has a label."""
    writer.body.append(writer.starttag(node, "div", CLASS="math notranslate"))
    if node["number"]:
        number = get_node_equation_number(writer, node)
        writer.body.append(f'<span class="eqno">({number})')
        writer.add_permalink_ref(node, "Link to this equation")
        writer.body.append("</span>")
    writer.body.append(render(writer, node, display=True) + "</div>\n")
    raise nodes.SkipNode


def preload_fonts(
    app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object
) -> None:
    """Ask for the fonts of maths before the style sheet does, on pages with maths."""
    maths = cast("MathDomain", app.env.get_domain("math"))
    if maths.has_equations(page):
        path = context["pathto"]
        fonts = [path(f"_static/katex/fonts/{font}.woff2", 1) for font in FONTS]
        context["metatags"] = context.get("metatags", "") + PRELOAD.format(fonts=fonts)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the renderer under the name that ``html_math_renderer`` asks for."""
    app.add_html_math_renderer("katex", (visit_inline, None), (visit_display, None))
    app.add_css_file(STYLE)
    app.connect("html-page-context", preload_fonts)
    return {
        "version": VERSION,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
