"""A report as a list of blocks, and the two ways to write it: one HTML file that needs nothing else, and Markdown.

All text that came from a console is escaped here and nowhere else. In text, `so` is code. Figures are SVG text made by pictures.py. HTML
has them inline, in the reader's colours; Markdown refers to files beside it.
"""

import html
import itertools
import re
from dataclasses import dataclass, field
from pathlib import Path

CODE = re.compile(r"`([^`]+)`")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f]")
STYLE = Path(__file__).with_name("style.css")


@dataclass
class Heading:
    text: str
    level: int = 2

    @property
    def anchor(self):
        return re.sub(r"[^a-z0-9]+", "-", self.text.lower()).strip("-")


@dataclass
class Text:
    text: str
    kind: str = ""  # "", "note" or "bad"


@dataclass
class Table:
    """
    Rows of cells. The first `left` columns are words, the others are numbers. Cells of rows in `ours` are set off. For each row, `links`
    has the href and id of its first cell.
    """

    head: list
    rows: list
    caption: str = ""
    left: int = 1
    ours: tuple = ()
    links: tuple = ()


@dataclass
class Figure:
    name: str
    svg: str  # "": it could not be drawn, and is left out
    caption: str

    def __bool__(self):
        return bool(self.svg)


@dataclass
class Paper:
    title: str
    blocks: list = field(default_factory=list)

    def add(self, *blocks):
        self.blocks += [block for block in blocks if block]

    def text(self, text, kind=""):
        self.add(Text(text, kind))

    def note(self, text):
        """What is not comparable."""
        self.text(text, "note")

    @property
    def figures(self):
        return [block for block in self.blocks if isinstance(block, Figure)]


# ---- HTML ----


def anchor(run):
    """The name of a run as a place on the page."""
    return "run-" + re.sub("[^A-Za-z0-9]+", "-", run)


def inline(text):
    return CODE.sub(r"<code>\1</code>", html.escape(CONTROL.sub("", text), quote=False))


def html_row(cells, left, tag, link=None):
    kinds, texts = ["", ' class="n"'], [inline(str(cell)) for cell in cells]
    if link:
        attributes = "".join(f' {key}="{value}"' for key, value in link.items())
        texts[0] = f"<a{attributes}>{texts[0]}</a>"
    return "".join(f"<{tag}{kinds[i >= left]}>{text}</{tag}>" for i, text in enumerate(texts))


def html_table(table):
    kinds, links = ["", ' class="ours"'], dict(enumerate(table.links))
    rows = "\n".join(f"<tr{kinds[i in table.ours]}>{html_row(row, table.left, 'td', links.get(i))}</tr>" for i, row in enumerate(table.rows))
    box = (
        f'<div class="table" tabindex="0" role="region" aria-label="{html.escape(table.caption[:80] or "table")}"><table>'
        f'<thead><tr>{html_row(table.head, table.left, "th")}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>'
    )
    return f'<p class="caption">{inline(table.caption)}</p>{box}'


def html_block(block):
    if isinstance(block, Heading):
        return f'<h{block.level} id="{block.anchor}">{inline(block.text)}</h{block.level}>'
    if isinstance(block, Text):
        return f'<p class="{block.kind or "text"}">{inline(block.text)}</p>'
    if isinstance(block, Table):
        return html_table(block)
    return f"<figure>{block.svg}<figcaption>{inline(block.caption)}</figcaption></figure>"


def to_html(paper):
    """One page that is XML as well. Figures that follow each other stand side by side if there is room."""
    parts = []
    for is_figure, blocks in itertools.groupby(paper.blocks, lambda block: isinstance(block, Figure)):
        made = "\n".join(map(html_block, blocks))
        parts.append(f'<div class="figures">\n{made}\n</div>' if is_figure else made)
    tops = [b for b in paper.blocks if isinstance(b, Heading) and b.level == 2]
    links = "\n".join(f'<a href="#{h.anchor}">{inline(h.text.partition(":")[0])}</a>' for h in tops)
    body = "\n".join(parts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<title>{html.escape(paper.title)}</title>
<style>
{STYLE.read_text(encoding="utf-8")}</style>
</head>
<body>
<main>
<h1>{inline(paper.title)}</h1>
<nav>{links}</nav>
{body}
</main>
</body>
</html>
"""


# ---- Markdown ----


def cell_md(cell):
    """A console's text must not become markup: pipes, brackets, asterisks and angle brackets are escaped outside code."""
    parts = CODE.split(str(cell))
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([|\\*_\[\]<>])", r"\\\1", parts[i])
    return "".join(f"`{part.replace('|', '/')}`" if i % 2 else part for i, part in enumerate(parts))


def table_md(table):
    lines = [f"**{cell_md(table.caption)}**\n"] if table.caption else []
    lines.append("| " + " | ".join(cell_md(cell) for cell in table.head) + " |")
    lines.append("|" + "|".join("---" if i < table.left else "---:" for i in range(len(table.head))) + "|")
    lines += ["| " + " | ".join(cell_md(cell) for cell in row) + " |" for row in table.rows]
    return "\n".join(lines)


def block_md(block):
    if isinstance(block, Heading):
        return "#" * block.level + " " + cell_md(block.text)
    if isinstance(block, Text):
        mark = {"note": "> ", "bad": "> **Failed.** "}.get(block.kind, "")
        return mark + cell_md(block.text)
    if isinstance(block, Table):
        return table_md(block)
    return f"![{cell_md(block.caption)}]({block.name}.svg)\n\n{cell_md(block.caption)}"


def to_markdown(paper):
    return f"# {paper.title}\n\n" + "\n\n".join(map(block_md, paper.blocks)) + "\n"
