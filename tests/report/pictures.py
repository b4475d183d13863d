"""Plots as SVG text, by matplotlib (the distribution's python3-matplotlib). Without matplotlib there are tables only.

Text and lines of a picture are drawn in one colour, which becomes `currentColor`. Inline in HTML it is the reader's colour, light or dark;
a picture in a file of its own brings a style that does the same. Text stays text. Names inside a picture are made unique, so that many
pictures fit on one page, and no part of a picture depends on when or where it was drawn.
"""

import io
import re

try:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot, ticker
except ImportError:
    matplotlib = None


INK = "#010203"
COLOURS = {"blue": "#3b82d0", "orange": "#e07b00", "green": "#2a9d5c", "purple": "#a765cf", "red": "#d9534f", "grey": "#8c949c"}
MARKS = "osD^vP"
ALONE = "<style>svg{color:#1c2024}@media(prefers-color-scheme:dark){svg{color:#e3e6e9}}</style>"


def available():
    return matplotlib is not None


def settings():
    inked = ("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color")
    pyplot.rcParams.update(dict.fromkeys(inked, INK) | {
        "svg.fonttype": "none", "svg.hashsalt": "ashlar", "font.family": "DejaVu Sans", "axes.spines.top": False, "axes.spines.right": False,
        "legend.frameon": False, "legend.fontsize": 9, "lines.markersize": 5, "figure.figsize": (5.2, 3.5), "savefig.transparent": True,
    })  # fmt: skip


def svg_of(figure, name):
    out = io.BytesIO()
    figure.savefig(out, format="svg", bbox_inches="tight", pad_inches=0.05, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    text = out.getvalue().decode("utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = text.replace(INK, "currentColor").replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    text = re.sub(r'^<svg ([^>]*?)width="[^"]*" height="[^"]*"', r'<svg role="img" \1', text, count=1, flags=re.S)
    text = re.sub(r'^<svg role="img" height="[^"]*"([^>]*?) width="[^"]*"', r'<svg role="img"\1', text, count=1, flags=re.S)
    return text


def standalone(svg):
    at = svg.index(">") + 1
    return svg[:at] + ALONE + svg[at:]


class Series:
    """One line: points (x, y) or (x, y, low, high)."""

    def __init__(self, label, points, colour, dashed=False):
        self.label, self.points, self.colour, self.dashed = label, sorted(points), colour, dashed

    def draw(self, axes, number):
        colour = COLOURS[self.colour]
        style = {"color": colour, "linestyle": "--" if self.dashed else "-", "label": self.label}
        xs, ys = [p[0] for p in self.points], [p[1] for p in self.points]
        axes.plot(xs, ys, marker=MARKS[number % len(MARKS)], markerfacecolor="none" if self.dashed else colour, **style)
        spread = [p for p in self.points if len(p) == 4]
        if spread:
            below, above = [p[1] - p[2] for p in spread], [p[3] - p[1] for p in spread]
            xs, ys = [p[0] for p in spread], [p[1] for p in spread]
            axes.errorbar(xs, ys, [below, above], fmt="none", ecolor=colour, elinewidth=1, capsize=2.5)


def plain(value, _position=None):
    """Label an axis with 1, 2, 1000, 0.5: no powers, no exponents."""
    return f"{value:,.0f}" if value >= 1 else f"{value:.4f}".rstrip("0").rstrip(".")


def frame(axes, xlabel, ylabel, logx, logy):
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    for log, axis, scale in ((logx, axes.xaxis, axes.set_xscale), (logy, axes.yaxis, axes.set_yscale)):
        if log:
            scale("log", base=log)
            axis.set_major_formatter(ticker.FuncFormatter(plain))
            axis.set_minor_formatter(ticker.NullFormatter())
    axes.grid(True, axis="y", color=COLOURS["grey"], alpha=0.3, linewidth=0.7)
    axes.set_axisbelow(True)


def lines(name, series, xlabel, ylabel, logx=0, level=None, xticks=(), logy=10):
    """A plot of lines. logx, logy: the base of a logarithmic scale, or 0; level: a horizontal line (value, label)."""
    series = [s for s in series if s.points]
    if not available() or not series:
        return ""
    settings()
    figure, axes = pyplot.subplots()
    for number, one in enumerate(series):
        one.draw(axes, number)
    if level:
        axes.axhline(level[0], color=COLOURS["grey"], linewidth=1.1, linestyle=":", label=level[1])
    frame(axes, xlabel, ylabel, logx, logy)
    if 1 < len(xticks) <= 8:
        axes.xaxis.set_major_locator(ticker.FixedLocator(xticks))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
    # The legend is above the plot, where it covers nothing.
    columns = 2 if len(series) + bool(level) > 1 else 1
    axes.legend(loc="lower left", bbox_to_anchor=(-0.12, 1.0), ncol=columns, columnspacing=1.2, handlelength=1.8, borderaxespad=0.3)
    return svg_of(figure, name)
