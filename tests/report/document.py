"""The whole report: the runs and their machines, a table of the five techniques, a section for each, and the other records."""

from urllib.parse import quote

import clear
import contig
import fill
import gigablock
import history
import hvo
import memmap
import pcp
import peer
import pictures
import programs
import quiet
import resident
import results
import words
from paper import Heading, Paper, Table, anchor
from records import of_kind

LOADED = 0.5  # share of a CPU: the work that a system does by itself, and a little more
SECTIONS = [module.section for module in (hvo, quiet, fill, history, memmap, clear, pcp, contig, gigablock, resident, peer, programs, results)]


def summary(captures):
    """Before, after and ours for each series, published and measured here, in one measure for each series."""
    lines = [hvo.headline, memmap.headline, clear.headline, pcp.headline_pcp, contig.headline]
    rows = [row for row in (line(captures) for line in lines) if row]
    head = ["what", "published: before", "published: after", "here: before", "here: after", "ours", "measured on", "runs"]
    return Table(head, rows, "Each technique in one line", ours=()) if rows else None


def hosts(captures):
    """The machines: what the host says of itself, and what each kind of guest saw."""
    found = []
    for capture in captures:
        where = words.WHERE.get(capture.where, capture.where)
        seen = capture.facts.get("cpu") if capture.where != "native" else None
        found += [f"{name}: {text}" for name, text in (("Host", capture.facts.get("host")), (where, seen)) if text]
    return list(dict.fromkeys(found))


def loaded(paper, captures):
    """Other work on the host: the largest figure that the host gave just before a run."""
    busy = max((capture.busy or 0 for capture in captures), default=0)
    if busy >= LOADED:
        paper.note(words.prose("document.busy", busy=busy))


def run_row(capture):
    facts = capture.facts
    ready = [r["ns_to_ready"] for r in of_kind([capture], "boot")]
    memory = words.size(facts["ram_bytes"]) if "ram_bytes" in facts else "-"
    machine = [words.WHERE.get(capture.where, capture.where), facts.get("cpus", "-"), memory]
    times = [words.figure(ready[0] / 1e6) if ready else "-", facts.get("seconds", "-"), facts.get("busy", "-")]
    return [capture.name, *machine, *times, len(capture.records), capture.torn, capture.problem or "pass", facts.get("command", "-")]


def runs(captures):
    head = ["run", "machine", "CPUs", "memory", "ms to ready", "s in all", "other work", "records", "torn", "verdict", "command"]
    first = {anchor(capture.name): capture for capture in reversed(captures)}
    names = {id(capture): {"id": name} for name, capture in first.items()}
    links = [names.get(id(capture), {}) | ({"href": quote(capture.path)} if capture.path else {}) for capture in captures]
    title = "Runs: a name leads to the console, which has the records"
    return Table(head, [run_row(capture) for capture in captures], title, left=2, links=links)


def make(captures):
    paper = Paper("Ashlar: five memory techniques, before and after")
    dates = sorted({c.facts["date"] for c in captures if "date" in c.facts})
    measured = [f"Measured {' to '.join(dict.fromkeys((dates[0], dates[-1])))}"] if dates else []
    if measured or hosts(captures):
        paper.text(". ".join(measured + hosts(captures)) + ".")
    loaded(paper, captures)
    for capture in captures:
        if capture.problem:
            paper.text(f"{capture.name}: {capture.problem}. What it had recorded until then is below.", "bad")
    if not pictures.available():
        paper.note("No pictures: matplotlib is not installed (`apt-get install python3-matplotlib`).")
    lines = summary(captures)
    if lines:
        paper.add(Heading("Summary"), lines)
        paper.note(words.prose("document.summary"))
    for section in SECTIONS:
        section(paper, captures)
    paper.add(Heading("Runs"), runs(captures))
    torn = [f"{c.name}:{line}" for c in captures for line in c.torn_at]
    if torn:
        paper.note(f"{len(torn)} lines begin as a record and are not whole: left out. The first: {', '.join(torn[:3])}.")
    return paper
