"""The built site: its maths, its numbers, and nothing from another host.

Two small books are built with the project's own settings: one that is sound, and one
whose TeX is not.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup, Tag
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).parent.parent
BUILD = "from jupyter_book.cli.main import main; main(prog_name='jupyter-book')"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
# With a widget in it, MyST-NB asks two other hosts for scripts unless told not to.
LAYOUT = {
    "model_module": "@jupyter-widgets/base",
    "model_module_version": "2.0.0",
    "model_name": "LayoutModel",
    "state": {},
}
WIDGETS = {
    "application/vnd.jupyter.widget-state+json": {
        "state": {"0" * 32: LAYOUT},
        "version_major": 2,
        "version_minor": 0,
    }
}

PAGES = {
    "index": "# A small book\n\nIts first page has text of its own.",
    "part/chapter": r"""# A chapter

$$
\frac{a}{b} = \prod_{j=1}^{t} x_j
$$ (eq-product)

By {eq}`eq-product`, $a_t \neq 0$ {cite}`someone`.

:::{admonition} Wrong: a sum
:class: wrong
$$
\frac{a}{b} = \sum_{j=1}^{t} x_j
$$
:::
""",
    "sources": "# Sources\n\n```{bibliography}\n```",
}
REFERENCES = """@book{someone,
  author={Some One}, title={A title}, publisher={A house}, year={2020}
}"""

# Label or none, and TeX that must not pass.
BROKEN = {
    "missing_argument": ("eq-missing", r"\frac{1}"),
    "unknown_macro": ("eq-unknown", r"\notamacro x"),
    "numbers_itself": ("eq-align", r"\begin{align} a &= b \end{align}"),
    "text_as_maths": (None, "梯度"),
    "inline": (None, r"\left( y"),
}


def write_book(folder: Path, pages: dict[str, str]) -> None:
    """Write the pages as notebooks, laid out like the book's own sources."""
    for name, text in pages.items():
        code = new_code_cell("def f(x):\n    return x", execution_count=1)
        cells = [new_markdown_cell(text), code]
        notebook = new_notebook(
            cells=cells, metadata={"kernelspec": KERNEL, "widgets": WIDGETS}
        )
        path = folder / "book" / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(nbformat.writes(notebook), encoding="utf-8")
    first, *rest = pages
    chapters = "".join(f"      - file: {name}\n" for name in rest)
    toc = f"format: jb-book\nroot: {first}\nparts:\n  - numbered: true\n    chapters:\n"
    (folder / "_toc.yml").write_text(toc + chapters, encoding="utf-8")
    (folder / "references.bib").write_text(REFERENCES, encoding="utf-8")


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the book as `make book` does; the site is in _build/html."""
    command = [sys.executable, "-W", "ignore", "-c", BUILD, "build", "book/notebooks"]
    command += ["--config", str(ROOT / "_config.yml")]
    command += ["--toc", str(folder / "_toc.yml")]
    command += ["--path-output", ".", "-W", "-n", "--keep-going"]
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONUTF8": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the sound book's site."""
    folder = tmp_path_factory.mktemp("a book")  # with a space, as readers have
    write_book(folder, PAGES)
    result = build(folder)
    assert result.returncode == 0, result.stdout
    return folder / "_build" / "html"


@pytest.fixture(scope="session")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the build of the unsound book said, once it has failed."""
    pages = {"index": "# A book with errors"}
    for name, (label, tex) in BROKEN.items():
        maths = f"$$\n{tex}\n$$" + (f" ({label})" if label else "")
        pages[name] = f"# A page\n\n{f'Here ${tex}$.' if name == 'inline' else maths}"
    folder = tmp_path_factory.mktemp("errors")
    write_book(folder, pages)
    result = build(folder)
    assert result.returncode != 0, result.stdout
    return result.stdout


@pytest.fixture(scope="session")
def real_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the book's own site."""
    folder = tmp_path_factory.mktemp("real")
    left_out = shutil.ignore_patterns(".ipynb_checkpoints")  # Jupyter's own copies
    shutil.copytree(ROOT / "book/notebooks", folder / "book/notebooks", ignore=left_out)
    for name in ("_toc.yml", "references.bib"):
        shutil.copy(ROOT / name, folder)
    result = build(folder)
    assert result.returncode == 0, result.stdout
    return folder / "_build" / "html"


def read(path: Path) -> BeautifulSoup:
    """Parse a page."""
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def one(page: BeautifulSoup | Tag, selector: str) -> Tag:
    """Return the only match, or fail."""
    (tag,) = page.select(selector)
    return tag


def urls(style: str) -> list[str]:
    """List what a style sheet loads, data aside."""
    found = re.findall(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""", style)
    loaded = [url or imported for url, imported in found]
    return [url for url in loaded if not url.startswith("data:")]


def is_elsewhere(url: str) -> bool:
    """Tell whether a browser would ask another host for this."""
    return re.match(r"(?:\w+:)?//", url.strip()) is not None


@pytest.fixture(scope="session")
def chapter(site: Path) -> BeautifulSoup:
    """The page that has maths."""
    return read(site / "part" / "chapter.html")


def test_an_equation_shows_the_number_that_its_reference_shows(
    chapter: BeautifulSoup,
) -> None:
    number = one(chapter, "div.math .eqno").find(string=True)
    reference = one(chapter, "p a[href='#equation-eq-product']")
    assert number is not None
    assert re.fullmatch(r"\(\d+\.\d+\)", number)
    assert reference.get_text() == number


def test_a_reference_leads_to_its_equation(chapter: BeautifulSoup) -> None:
    target = one(chapter, "#equation-eq-product")
    assert one(target, "annotation").get_text().strip() in PAGES["part/chapter"]
    assert one(target, ".eqno a.headerlink")["href"] == "#equation-eq-product"


def test_maths_is_mathml_and_html_and_no_tex_is_left(chapter: BeautifulSoup) -> None:
    written = re.findall(r"\$+([^$]+)\$+", PAGES["part/chapter"])
    formulas = chapter.select("article .math")
    for tex, formula in zip(written, formulas, strict=True):
        assert one(formula, "math annotation").get_text().strip() == tex.strip()
        assert "\\" not in one(formula, ".katex-html").get_text()


def test_code_is_highlighted_as_python(chapter: BeautifulSoup) -> None:
    keywords = [tag.get_text() for tag in chapter.select(".highlight-python .k")]
    assert keywords == ["def", "return"]


def test_a_wrong_formula_keeps_its_mark_and_has_no_number(
    chapter: BeautifulSoup,
) -> None:
    box = one(chapter, "div.admonition.wrong")
    assert one(box, ".admonition-title").get_text().startswith("Wrong")
    one(box, "math")
    assert not box.select(".eqno, .math[id]")


def test_the_root_is_a_page_and_not_a_redirect(site: Path) -> None:
    page = read(site / "index.html")
    assert "text of its own" in one(page, "article").get_text()
    assert not page.select("meta[http-equiv='Refresh' i]")


@pytest.mark.parametrize("which", ["site", "real_site"])
def test_no_page_asks_another_host(which: str, request: pytest.FixtureRequest) -> None:
    for path in request.getfixturevalue(which).rglob("*.html"):
        page = read(path)
        asked = [str(tag["src"]) for tag in page.select("[src]")]
        asked += [str(tag["data"]) for tag in page.select("object[data]")]
        asked += [str(tag["poster"]) for tag in page.select("[poster]")]
        asked += [str(tag["href"]) for tag in page.select("image[href]")]
        for tag in page.select("[srcset]"):
            asked += [part.split()[0] for part in str(tag["srcset"]).split(",")]
        asked += [str(tag["href"]) for tag in page.select("link[href]")]
        for tag in page.select("style, [style]"):
            asked += urls(tag.get_text() if tag.name == "style" else str(tag["style"]))
        assert asked
        assert [url for url in asked if is_elsewhere(url)] == [], path.name


def test_every_chapter_has_its_clean_address_and_every_image_its_text(real_site: Path) -> None:
    texts = sorted((ROOT / "book/text").rglob("*.md"))
    assert texts
    for text in texts:
        address = text.relative_to(ROOT / "book/text").with_suffix(".html")
        page = read(real_site / address)
        one(page, "article h1")
        for image in page.select("article img"):
            assert len(str(image.get("alt", ""))) > 40, address


def test_no_style_sheet_asks_another_host(site: Path) -> None:
    sheets = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    asked = [url for sheet in sheets for url in urls(sheet)]
    assert asked
    assert [url for url in asked if is_elsewhere(url)] == []


def test_no_page_starts_mathjax_require_or_thebe(site: Path) -> None:
    for path in site.rglob("*.html"):
        scripts = "".join(map(str, read(path).select("script"))).lower()
        assert scripts
        for name in ("mathjax", "require.", "html-manager", "embed-amd", "thebe"):
            assert name not in scripts, path.name


def test_the_script_of_katex_stays_out_of_the_site(site: Path) -> None:
    assert [path.name for path in site.rglob("*katex*.js")] == []
    for path in site.rglob("*.js"):
        assert "renderToString" not in path.read_text(encoding="utf-8"), path.name


def test_the_style_of_katex_and_all_its_fonts_are_in_the_site(
    site: Path, chapter: BeautifulSoup
) -> None:
    link = one(chapter, "link[href*='katex']")
    sheet = site / "part" / str(link["href"]).partition("?")[0]
    fonts = urls(sheet.read_text(encoding="utf-8"))
    assert fonts
    assert [font for font in fonts if not (sheet.parent / font).is_file()] == []


def test_preloaded_fonts_are_in_the_site(site: Path, chapter: BeautifulSoup) -> None:
    fonts = re.findall(r"'([^']+\.woff2)'", str(chapter.head))
    assert fonts
    assert [font for font in fonts if not (site / "part" / font).is_file()] == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_tex_error_names_file_line_label_and_tex(name: str, complaints: str) -> None:
    label, tex = BROKEN[name]
    where = re.search(rf"{name}\.ipynb:\d+: WARNING: (.*\n.*)", complaints)
    assert where is not None, complaints
    assert tex in where[1]
    assert re.search(r"\(cell \d+, line \d+\)", where[1])
    if label:
        assert label in where[1]
