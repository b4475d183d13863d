"""The pages are true: links lead somewhere, the functions that are named exist, the commands that are shown work, and so do the examples
of "Try your own".

Lines of a monitor session (`ashlar> ...`) and `make run CMDLINE=...` are run. test_typed.py checks the goals and variables of other `make`
lines; other tests of this suite run the long ones.
"""

import importlib.util
import re
import shlex
import subprocess
import sys

import export
import pytest
import readme
import records
from guest import run
from machine import ROOT, Machine
from test_build import make

PAGES = sorted(p for p in ROOT.rglob("*.md") if "build" not in p.relative_to(ROOT).parts)
SECONDS = 180


def shown(page):
    text = page.read_text(encoding="utf-8")
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)
    return re.findall(r"^    (\S.*)$", text, re.M) + [line.strip() for block in fenced for line in block.splitlines()]


def commands(page, pattern):
    """Commands that begin with the pattern, without the explanation that follows two blanks or more."""
    lines = [re.split(r"  +", line)[0] for line in shown(page)]
    return [line for line in lines if re.match(pattern, line)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


# Functions of Linux that documents name.
FOREIGN = set("""
alloc_contig_pages deferred_init_memmap deferred_init_memmap_chunk free_unref_page_list get_pcppage_migratetype get_pfnblock_migratetype
has_isolate_pageblock hugetlb_vmemmap_restore_folios padata_do_multithreaded page_count pfn_range_suitable_contig pfn_range_valid_contig
remove_pool_hugetlb_folio rmqueue_buddy set_pcppage_migratetype unlink update_and_free_pages_bulk __rmqueue_smallest PageHuge
""".split())


def called():
    texts = [p.read_text(encoding="utf-8") for folder in ("boot", "arch", "kernel", "mm", "tests") for p in (ROOT / folder).rglob("*.[chS]")]
    texts += [p.read_text(encoding="utf-8") for p in (ROOT / "tests/model").glob("*.pml")] + [(ROOT / "ashlar.h").read_text(encoding="utf-8")]
    return set(re.findall(r"\b(\w+)\(", "\n".join(re.sub(r"/\*.*?\*/", "", text, flags=re.S) for text in texts)))


def test_functions_that_are_named_exist():
    there = called() | FOREIGN
    wrong = [(str(page.relative_to(ROOT)), name)
             for page in PAGES for name in re.findall(r"\b(\w+)\(\)", page.read_text(encoding="utf-8")) if name not in there]
    assert not wrong, wrong


def cells(row):
    """Number of cells in a line of a table; `\\|` is part of a cell's text."""
    assert row.startswith("|") and re.search(r"(?<!\\)\|$", row), f"the row is not whole: {row}"
    return len(re.findall(r"(?<!\\)\|", row)) - 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_rows_of_tables_are_whole(page):
    for table in re.split(r"\n\s*\n", page.read_text(encoding="utf-8")):
        rows = table.splitlines()
        if rows and rows[0].startswith("|") and len(rows) > 1:
            assert {row: cells(row) for row in rows} == {row: cells(rows[0]) for row in rows}


def test_calls_are_tested_where_their_rows_say():
    """The table of calls: each has its number, and the cases that its row names call it by its name."""
    text = (ROOT / "kernel/program/call_rows.h").read_text(encoding="utf-8")
    rows = re.findall(r'^(CALL|SAME|ANSWER)\((\d+), +(\w+), +"([a-zN08.]{0,6})", .*?(\w+)\)$', text, re.M)
    assert len(rows) > 150 and len(rows) == len(re.findall(r"^(?:CALL|SAME|ANSWER)\(", text, re.M))
    groups = set(re.findall(r"^def (\w+)\(builder\):", (ROOT / "tests/programs/run.py").read_text(encoding="utf-8"), re.M)) | {"fuzz"}
    for _, _, name, _, tested in rows:
        if tested not in groups:
            assert f'"{name}"' in (ROOT / f"tests/kernel/program_{tested}_test.c").read_text(encoding="utf-8"), name


def test_calls_have_the_names_that_linux_gives_their_numbers():
    """Each call that the host's header knows is in one of the two tables, by its name."""
    macros = subprocess.run(["gcc", "-E", "-dM", "-include", "asm/unistd_64.h", "-x", "c", "/dev/null"],
                            capture_output=True, text=True, check=True, timeout=60).stdout
    linux = {int(number): name for name, number in re.findall(r"^#define __NR_(\w+) (\d+)$", macros, re.M)}
    rows, names = ((ROOT / "kernel/program" / name).read_text(encoding="utf-8") for name in ("call_rows.h", "call_names.h"))
    ours = {int(number): name for number, name in re.findall(r"^(?:CALL|SAME|ANSWER)\((\d+), +(\w+)", rows, re.M)}
    absent, number = {}, 0
    for place, name in re.findall(r'(?:\[(\d+)\] = )?"(\w+)"', names):
        number = int(place or number + 1)
        absent[number] = name
    assert not ours.keys() & absent.keys()
    assert len(linux) > 300 and {number: name for number, name in {**ours, **absent}.items() if number in linux} == linux


def test_the_figures_of_the_readme_are_those_of_its_record():
    """Tables, ratios and the only picture are readme.py's, and any other figure with two decimals is in a record that the page links."""
    page, *texts = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "tests/report/readme.record", "tests/report/measurements/hvo.txt"))
    assert readme.filled(page, texts[0]) == page
    assert readme.picture(texts[0]) == (ROOT / "tests/report/readme.svg").read_text(encoding="utf-8")
    shown = [name for path in PAGES for name in re.findall(r"<img src=.(.*?)\"|!\[[^]]*\]\((.*?)\)", path.read_text(encoding="utf-8"))]
    assert shown == [("tests/report/readme.svg", "")]
    assert set(re.findall(r"\d+\.\d\d+", page)) <= set(re.findall(r"\d+\.\d\d+", "\n".join(texts)))


def test_the_monitors_session(kernel):
    """The session in one unattended run, in which a refused or unknown line would be a failure."""
    lines = [line.removeprefix("ashlar> ") for line in commands(ROOT / "kernel/MONITOR.md", "ashlar> ")]
    assert len(lines) > 15
    run(Machine("pvh", 4, "6G", cmdline=f'run="{"; ".join(lines)}"'), kernel, SECONDS).ended()


@pytest.mark.parametrize("page", ["kernel/MONITOR.md", "tests/README.md"])
def test_runs_that_are_shown(kernel, page):
    for line in commands(ROOT / page, "make run CMDLINE="):
        cmdline = shlex.split(line)[-1].partition("=")[2]
        if any(name in cmdline for name in ("mm.example", "order", "inplace", "blind")):
            continue  # these need code that the page tells the reader to write: see below
        run(Machine("pvh", 4, "6G", cmdline=cmdline), kernel, SECONDS).ended()


def written(text, copy):
    """Put into the tree the code that the page tells the reader to write: C files, named by their first line, and diffs."""
    for code in re.findall(r"^```c\n(.*?)^```", text, re.M | re.S):
        name = re.match(r"/\* (\S+\.c):", code)
        (copy / (name[1] if name else "tests/kernel/mm_example_test.c")).write_text(code)
    for diff in re.findall(r"^```diff\n(.*?)^```", text, re.M | re.S):
        subprocess.run(["patch", "-p1"], cwd=copy, input=diff, text=True, check=True, timeout=600)


def plotted(text, console, folder):
    """Run the page's programs over the records of this console, those whose modules are installed."""
    (folder / "build/mine").mkdir(parents=True)
    export.write([records.parse(console.encode())], folder / "build/mine")
    for code in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
        if all(importlib.util.find_spec(name) for name in re.findall(r"^(?:import|from) (\w+)", code, re.M)):
            subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, timeout=600)
            (folder / "order.svg").unlink()


def test_what_the_reader_writes_works(copy, tmp_path):
    """The example case, the benchmark with its plots, and the examples of "Try your own" in tests/README.md, unchanged, in a copy of the tree."""
    text = (ROOT / "tests/README.md").read_text(encoding="utf-8")
    written(text, copy)
    make(copy, "kernel")
    kernel = copy / "build/ashlar.elf"
    words = "contig=blind"
    cases = "mm.example.*,mm.contig.a_gigabyte*"
    run(Machine("pvh", 2, "4G", cmdline=f"test={cases} {words}"), kernel, SECONDS).ended().says("mm.example")
    bench = run(Machine("pvh", 2, "4G", cmdline="bench=order"), kernel, SECONDS).ended()
    bench.says("BENCH order order=9 run=4 ns=")
    plotted(text, bench.text + "\n", tmp_path)
    words += ' bench="hvo modes=inplace pages=256; contig memory=fresh searches=blind total=1" hvo=inplace'
    bench = run(Machine("pvh", 2, "4G", cmdline=words), kernel, SECONDS).ended()
    bench.says("BENCH hvo mode=inplace .*op=free .*done=256", "BENCH contig mode=blind .*total=1 ")
