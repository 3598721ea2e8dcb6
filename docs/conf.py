"""Sphinx: README.md, CONTRIBUTING.md and docs/ as a site that loads nothing from elsewhere
(`scripts/docs site`).

The source folder is the root of the project, so that links between the pages are the same as in the
repository. What a repository shows by itself is added here: the navigation.
"""

import re
import shutil
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

import seq2seq_attn

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "runs" / "demo.html"
NOTEBOOKS = ROOT / "build" / "notebooks"
project = "seq2seq-attn"
author = copyright = ""
release = seq2seq_attn.__version__
html_title = project
extensions = ["myst_nb", "sphinx_copybutton", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
python_maximum_signature_line_length = 80  # a longer signature has a line per parameter
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
default_role = "literal"  # docstrings write code as Markdown does
copybutton_prompt_text = "$ "
html_static_path = ["site.css"]
html_css_files = ["site.css"]
root_doc = "README"
include_patterns = [
    "*.md",
    "data/README.md",
    "examples/plugin/README.md",
    "docs/**.md",
    "docs/learn/[0-9]*.py",
]
html_theme = "furo"
html_show_copyright = html_show_sphinx = html_copy_source = False
html_theme_options = {"top_of_page_buttons": []}
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # `scripts/docs learn` executes them
nb_merge_streams = True
nb_custom_formats = {".py": ["scripts.laboratory.pages.site.read_notebook", {}]}

NAVIGATION = {
    "Begin": ["docs/tutorial", "docs/own-text", "docs/choose"],
    "Course": [
        "docs/learn/1-one-vector",
        "docs/learn/2-attention",
        "docs/learn/3-search",
        "docs/learn/4-measuring",
        "docs/lab",
    ],
    "Use": ["docs/train", "docs/translate", "docs/evaluate", "docs/serve", "docs/api"],
    "Look up": ["docs/mechanisms", "docs/commands", "docs/configuration", "docs/trouble"],
    "Measured": [
        "docs/results",
        "docs/quality",
        "docs/bottleneck/README",
        "docs/speed/README",
        "docs/typos",
    ],
    "Change": [
        "docs/architecture",
        "docs/stability",
        "CONTRIBUTING",
        "examples/plugin/README",
        "SECURITY",
        "data/README",
        "CHANGELOG",
    ],
}


TRY_IT = (
    '<p><a href="demo.html"><strong>Try it in this browser</strong></a>: two models translate as '
    "you type.</p>"
)


NOTEBOOKS_LINK = '<a href="../notebooks.zip"><code>notebooks.zip</code></a>'


def add_to_page(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the navigation to README, and the notebooks to the page about a lab.

    Links to source files become downloads.
    """
    source[0] = re.sub(r"\]\((?!https?:)(?!\S*learn/)(\S+\.py)\)", r"](path:\1)", source[0])
    if page == "docs/lab" and NOTEBOOKS.exists():
        source[0] = source[0].replace("`notebooks.zip`", NOTEBOOKS_LINK, 1)
    if page == "README":
        if DEMO.exists():
            source[0] = source[0].replace("\n\n", f"\n\n{TRY_IT}\n\n", 1)
        for caption, pages in NAVIGATION.items():
            listed = "\n".join(f"/{name}" for name in pages)
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listed}\n```\n"


def visit_math(self: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Formulas as MathML, which browsers draw by themselves."""
    is_block = isinstance(node, nodes.math_block)
    formula = tex2mathml(node.astext(), as_block=is_block)
    self.body.append(f"<p>{formula}</p>" if is_block else formula)
    raise nodes.SkipNode


def finish(app: Sphinx, error: Exception | None) -> None:
    """The front page under the name that servers look for, and the demo's page where there is
    one."""
    if error is None:
        (app.outdir / "index.html").write_text(
            '<meta http-equiv="refresh" content="0; url=README.html">\n'
        )
        if DEMO.exists():
            shutil.copy(DEMO, app.outdir / "demo.html")
        if NOTEBOOKS.exists():
            shutil.make_archive(str(app.outdir / "notebooks"), "zip", NOTEBOOKS)


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    app.connect("source-read", add_to_page)
    app.connect("build-finished", finish)
