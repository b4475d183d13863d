"""The report: the lines that count as records, whole pages from any console, pages that need nothing but themselves."""

import html
import os
import random
import re
import shutil
import subprocess
from types import SimpleNamespace
from xml.etree import ElementTree

import bench_linux
import figures
import legs
import pictures
import pytest
import words
from conftest import skip_machine
from document import make
from machine import ROOT
from paper import Table, to_html, to_markdown
from records import NEEDED, parse

# All kinds of records. Of HVO: off takes 6400 ns in the first run, unbatched a hundred times that, batched a half and on a quarter; the second
# run takes twice as long and the third three times.
CONSOLE = (ROOT / "tests/qemu/report.console").read_text(encoding="ascii")
HVO = ("BENCH hvo mode={} source=fresh op={} size=2M pages=64 done=64 cpus={} run={} ns={} flushes=2 splits=1 ipis=14 interrupted=7 skipped=0"
       " frames_saved=447 debt_open_ns=1000 debt_split_ns=2000 debt_blocks=64 threads=1\n")  # fmt: skip
BOOT = CONSOLE.splitlines(True)[1]
PASSED = "ASHLAR-END verdict=pass code=0x10\n# capture where tcg\n"


def kinds(capture):
    return [record.kind for record in capture.records]


def report(*captures):
    return to_markdown(make(list(captures)))


def rows_in(text, caption, **wanted):
    """Rows of the table whose caption begins so, as {column: cell}; only those with these cells."""
    lines = text.replace("\\", "").partition(f"**{caption}")[2].partition("**")[2].strip().split("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    found = [dict(zip(rows[0], row)) for row in rows[2:]]
    return [row for row in found if all(row[key] == value for key, value in wanted.items())]


def test_a_clean_console():
    capture = parse(CONSOLE.encode(), "clean")
    assert (capture.torn, capture.verdict, capture.problem, capture.where) == (0, "pass", "", "tcg")
    assert len(capture.records) == CONSOLE.count("BENCH ")
    assert capture.facts["cpus"] == 8 and capture.records[1]["ns"] == 6400


@pytest.mark.parametrize("noise", [
    lambda text: text.replace("\n", "\r\n"),
    lambda text: text.replace("\n", "\r\r\n"),
    lambda text: "\x1bc\x1b[?7l\x1b[2J\x1b[0mSeaBIOS" + text,
    lambda text: text.replace("BENCH", "\x1b[0mBENCH"),
    lambda text: text.replace("BENCH hvo", "[    0.017389] clock: BENCH hvo"),
    lambda text: text.replace("\nBENCH", "\nsome table 1 2 3\n\xff\xfe\x00bytes of another\nBENCH"),
])  # fmt: skip
def test_noise_around_records(noise):
    capture = parse(noise(CONSOLE).encode("latin-1"))
    assert kinds(capture) == kinds(parse(CONSOLE.encode())) and capture.torn == 0


@pytest.mark.parametrize("line", [
    "BENCH boot firmware=pvh cpus_found=8 cpus_started=8 nodes=1 ram_bytes=128",  # cut: keys are missing
    BOOT.strip().replace("nodes=1", "nodes=x1"),  # no number
    BOOT.strip().replace("nodes=1", "nodes=1 nodes=2"),  # twice
    BOOT.strip().replace("nodes=1", "no des=1"),  # a byte more
    BOOT.strip().replace("ns_to_ready=132194247", "ns_to_ready=0"),  # a time of nothing
    BOOT.strip().replace("ns_to_ready=132194247", "ns_to_ready=" + "9" * 40),
    BOOT.strip().replace("ns_to_ready=132194247", "ns_to_ready=nan"),
    BOOT.strip() + " x=" + "y" * 3000,
    "BENCH", "BENCH ", "BENCH boot", "BENCH =", "BENCH \ufffdx y=1",
])  # fmt: skip
def test_torn_lines_are_no_records(line):
    capture = parse((line + "\n" + BOOT).encode())
    assert kinds(capture) == ["boot"] and capture.torn == ("BENCH " in line)


def test_a_line_that_lost_its_end():
    """Another record follows on the same line, or the console ends: ns=1 may have been ns=18."""
    capture = parse((HVO.format("off", "alloc", 8, 1, 6400)[:90] + BOOT).encode())
    assert (kinds(capture), capture.torn) == (["boot"], 1)
    capture = parse((2 * "BENCH own op=pair ns=18\n")[:-2].encode())
    assert (len(capture.records), capture.torn) == (1, 1)


def test_how_a_run_ended():
    assert parse(CONSOLE.replace("verdict=pass", "verdict=crash").encode()).problem == "verdict crash"
    assert parse(BOOT.encode()).problem == "it ended without a verdict"
    assert parse((CONSOLE + "# capture failed stopped\n").encode()).problem == "stopped"
    one = BOOT + PASSED
    assert parse(("# capture boots 2\n" + one).encode()).problem == "1 of 2 boots came to a verdict"
    assert parse(("# capture boots 2\n" + one.replace("=pass", "=fail") + one).encode()).problem == "verdict fail"
    assert parse(("# capture boots 2\n" + one + one).encode()).problem == ""
    late = parse((BOOT + "# capture failed it took longer than it may\n").encode(), "hvo-8")
    assert "hvo-8: it took longer than it may" in report(late, parse(CONSOLE.encode(), "other"))


def page_of(text, consoles=()):
    """The elements of a page: every one is closed in its order, no two have a name, and nothing is fetched or linked but the consoles."""
    elements = list(ElementTree.fromstring(text).iter())
    for key, value in (attribute for element in elements for attribute in element.items()):
        assert not key.endswith(("src", "srcset", "onload")) and (not key.endswith("href") or value.startswith("#") or value in consoles), (key, value)
    ids = [element.get("id") for element in elements if element.get("id")]
    assert len(ids) == len(set(ids))
    assert {value[1:] for element in elements if (value := element.get("href", "")).startswith("#")} <= set(ids), "links that lead nowhere"
    return elements


def tags(elements):
    return [element.tag for element in elements]


@pytest.fixture
def without_pictures(monkeypatch):
    monkeypatch.setattr(pictures, "matplotlib", None)


def test_the_page_is_whole(without_pictures):
    paper = make([parse(CONSOLE.encode(), "one")])
    page = page_of(to_html(paper))
    assert not {"script", "link", "img", "iframe", "object"} & set(tags(page))
    text = " ".join(page[0].itertext())
    for word in ("HVO series:", "Memmap series:", "Clearing series:", "Per-CPU list series:", "Contiguous-range series:", "Not comparable", "No pictures"):
        assert word in text, word
    assert all(len(row) == len(table.head) for table in paper.blocks if isinstance(table, Table) for row in table.rows)
    assert text.count("published") > 10 and "100x" in text  # unbatched against off
    assert to_markdown(paper).count("\n## ") == tags(page).count("h2")


COUNTED = words.figure(figures.parse((ROOT / "tests/bench/counts").read_text(encoding="utf-8"))[1]["pool-2M-batched.shrink"].insns)
HVO_TABLE = "Growing (alloc) and shrinking (free)"


def test_hvo_rows_are_those_of_equal_work(without_pictures):
    """off: 6400, 12800, 19200 ns for 64 pages; unbatched a hundred times, batched a half, on a quarter. With 128 pages off takes ten times
    as long for each page: another row, and no part of the median of this row. The four costs are added up run by run."""
    slow = "".join(line.replace("pages=64 done=64", "pages=128 done=128") for line in CONSOLE.splitlines(True) if "hvo" in line)
    slow = slow.replace("ns=6400 ", "ns=128000 ").replace("ns=12800 ", "ns=128000 ") + PASSED
    text = report(parse(CONSOLE.encode(), "a"), parse(slow.encode(), "b"))
    rows = {(row["mode"], row["op"], row["pages"]): row for row in rows_in(text, HVO_TABLE, machine="QEMU, emulated")}
    ratios = [[rows[mode, op, pages]["mode:off (range)"] for mode in ("unbatched", "batched", "on")] for op in ("alloc", "free") for pages in ("64", "128")]
    same, slower = ["100x (100 to 100)", "0.500x (0.500 to 0.500)", "0.250x (0.250 to 0.250)"], ["10.0x (5.00 to 100)", "0.500x (0.0250 to 1.00)", "0.0250x (0.0125 to 0.250)"]
    assert ratios == [same, slower] * 2
    assert len(rows_in(text, HVO_TABLE)) == 16 + 16, "the published rows, and two sizes of four modes"
    in_all = {row["mode"]: row for row in rows_in(text, "What it costs in all", pages="64")}
    assert (in_all["off"]["in all (range)"], in_all["off"]["mode:off (range)"]) == ("0.447 (0.247 to 0.647)", "1.00x (1.00 to 1.00)")
    assert (in_all["on"]["in all (range)"], in_all["on"]["mode:off (range)"]) == ("0.147 (0.0969 to 0.197)", "0.329x (0.304 to 0.392)")
    beside = rows_in(report(parse(CONSOLE.encode())), "Beside the published ratios", mode="batched", op="free")
    assert list(beside[0].values())[7:] == ["0.500x (0.500 to 0.500)", "3.11x", "1.66x", "0.0312", "0.219", COUNTED, "0.00625 to 0.156", "3"]
    cold = CONSOLE.replace("mode=on source=fresh", "mode=on warm=no source=fresh")
    rows = [row["mode:off (range)"] for row in rows_in(report(parse(cold.encode())), HVO_TABLE, machine="QEMU, emulated, cold", mode="on")]
    assert rows == ["-", "-"], "what was warmed is not compared with what was not"
    once_cold = re.sub(r"(mode=on source=fresh .*run=1) ", r"\1 warm=no ", CONSOLE)
    ratios = [rows_in(report(parse(once_cold.encode())), caption, machine="QEMU, emulated", mode="on", op="alloc")[0]["mode:off (range)"]
              for caption in (HVO_TABLE, "What it costs in all")]  # fmt: skip
    assert ratios == ["0.250x (0.250 to 0.250)", "0.317x (0.304 to 0.329)"], "each run is divided by that of its own turn"
    told = "one run, which says nothing"
    assert all(told not in caption for caption in re.findall(r"\*\*((?:Grow|What|Beside|Ratios).*?)\*\*", text))
    once = report(parse(re.sub("BENCH (hvo|pcp) .* run=[23] .*\n", "", CONSOLE).encode()))
    assert {caption[:6] for caption in re.findall(rf"\*\*(.*?{told}.*?)\*\*", once)} >= {"Growin", "Beside", "Ratios", "ms for", "page\\_"}


COLD = [  # a table, and the columns that compare a row with another
    (HVO_TABLE, ("mode:off (range)", "net mode:off")),
    ("What it costs in all", ("mode:off (range)",)),
    ("Touching a region", ("change", "change as one")),
    ("Clearing alone", ("change", "change as one")),
    ("page_fault1: a region", ("types:on (range)",)),
    ("After the trace", ("of by-block",)),
]


def test_cold_memory_is_compared_with_nothing(without_pictures):
    """Not even with other cold memory, of which nobody knows how cold it was."""
    warm, cold = CONSOLE, re.sub("^(BENCH (?!boot).*)$", r"\1 warm=no", CONSOLE, flags=re.M)
    shown = {text: [row[key] for caption, keys in COLD for row in rows_in(report(parse(text.encode())), caption) for key in keys
                    if "published" not in " ".join(row.values())] for text in (warm, cold)}  # fmt: skip
    assert set(shown[warm]) > {"-"} and set(shown[cold]) == {"-"} and len(shown[cold]) == len(shown[warm])
    assert not rows_in(report(parse(cold.encode())), "Ratios, allocating") and "%)" in report(parse(warm.encode()))
    latencies = rows_in(report(parse(cold.encode())), "ms for a page, batches of ten")
    assert latencies and all("%" not in cell for row in latencies for name, cell in row.items() if not name.startswith("published"))


def test_pages_that_can_be_had_are_counted_in_cold_memory_too(without_pictures):
    """What is counted does not depend on the host: all days stand in one row."""
    days = "".join(f"BENCH history mode=on day={day} ns=5 large={13 - day} small={70 - day} warm={warm}\n" for day, warm in enumerate(("no", "yes", "yes")))
    rows = rows_in(report(parse((CONSOLE + days).encode())), "Pages that can be had")
    assert [list(row.values()) for row in rows] == [["12 GiB", "hvo=on", "13", "12", "11", "70", "69", "68"]]


SHOWN = [  # a table, cells that choose a row, and what the row has somewhere
    # 8 MiB in 2.1, 1.05 and 0.52 ms in the second of three runs; 1 GiB as one instruction is a column of its own
    ("Touching a region", {"machine": "QEMU, emulated", "instruction": "`erms`"}, "4.00 (2.67 to 8.00) | 8.00 (5.33 to 16.0) | +100.0 % | - | -"),
    ("Touching a region", {"machine": "QEMU, emulated", "instruction": "the default"}, "- | 16.0 (10.7 to 32.0)"),
    ("Clearing alone", {"size": "1G", "instruction": "`nt`"}, "10.7 | - | 21.5"),
    # the stream with the least median is the bandwidth
    ("Clearing cold memory by all CPUs", {"CPUs": "2"}, "33.6 | 35.8 | `nt` | 0.938 | 50.0 | 40.0"),
    ("Interrupts of programs", {"quiet": "on"}, "Ashlar | batched | fresh | 64 | on | 7.00 | 0 | 2 | - | 3.00"),
    # Linux stands in the mode that does as it does
    ("Interrupts of programs", {"system": "Linux 6.1"}, "Linux 6.1 | unbatched | - | 32 | nohz:1-3 | 145 | 143 | - | 2.00 | 3.00 | 1"),
    ("Memory of QEMU", {"kernel": "ashlar"}, "80.0 | 1,104 | 80.0 | 0.413 | 0.500"),
    ("Memory of QEMU", {"thp": "never"}, "360 | 1,390 | 400 | - | -"),
    ("After the trace", {"placement": "by-block"}, "1000 | by-block | 2.00 | 12.0 | 4.00 | 0 | 0 | 0 | 700 | 500 | 9.00 | 1.00 | 5.00 | 1.00x"),
    ("After the trace", {"placement": "by-GiB"}, "1000 | by-GiB | 2.00 | 5.00 | 4.00 | 7.00 | 0 | 7.00 | 700 | 500 | 9.00 | 1.00 | 6.00 | 1.20x"),
    ("After the trace", {"placement": "Linux 6.12.1"}, "1000 | Linux 6.12.1 | - | 10.0 | - | - | - | 0 | - | - | 8.00 | - | 7.00 | - | 1"),
    ("`clear_extent`", {}, "erms | 1G | 64K | 1,073,741,824 | 50,000,000"),
    ("Events per huge page", {"IPC": "2.00", "machine": "QEMU, emulated", "run": "1"}, "`erms`, 4K | 2M | 4 | 1 | 2.00 | 2,000 | 100"),
    # opening has its own unit, and making all struct pages in the end stands beside it, with its deviation
    ("Ours, lazy", {"unit": "ns per page opened"}, "0.00010 (0.00001) | ns per page opened | 0.100 | - | 7"),
    ("Ours, lazy", {"unit": "ns per struct page"}, "0.0250 (0.00070) | ns per struct page | 25.0 | 70.0 | 7"),
    ("Threads beside the limit", {}, "1.20 (1.00 to 1.85) | 1.90 (1.25 to 1.99) | 2 of 3"),
    # the published columns with their percentages, and ours computed in the same way
    ("ms for a page, batches of ten", {"latency": "Max-5"}, "82.14 (0.00%) | 5.11 (93.78%) | 20.49 (75.05%) | 8.00 (0.00%) | 2.00 (75.00%) | 4.00 (50.00%) | 0.100 (98.75%)"),
    ("Ratios, allocating", {"": "ours, QEMU, emulated, ns a page"}, "0.9000 (0.900 to 0.900) | 0.9500 (0.950 to 0.950) | 0.2632 (0.263 to 0.263) | 0.2500 ("),
    ("page_fault1: a region", {"types": "each (the series)"}, "0.9979"),
    ("Each technique", {"here: before": "100x (100 to 100)"}, "0.500x (0.500 to 0.500) | 0.250x (0.250 to 0.250) | QEMU, emulated, 8 CPUs | 3"),
    # ours is what makes as many struct pages
    ("Each technique", {"runs": "7"}, "| 18.0 | 9.00 | 6.00 (5.50 to 7.00) | QEMU, emulated, 8 CPUs | 7"),
    ("Each technique", {"runs": "2"}, "| 1 | 0.9000 (0.900 to 0.900) | 0.2500 (0.250 to 0.250) | QEMU, emulated | 2"),
    ("Each technique", {"runs": "1"}, "| - | - | 0.00020 (0.00010 to 0.00030) | QEMU, emulated, 8 CPUs | 1"),
]


@pytest.mark.parametrize("caption, wanted, cells", SHOWN)
def test_what_a_row_shows(without_pictures, caption, wanted, cells):
    rows = rows_in(report(parse(CONSOLE.encode())), caption, **wanted)
    assert rows and all(cells in " | ".join(row.values()) for row in rows), rows


def test_published_figures_keep_their_unit(without_pictures):
    """Rates of faults stand beside faults only, and no time is converted to nanoseconds a page unless it was measured so."""
    text = report(parse("".join(line for line in CONSOLE.splitlines(True) if "BENCH fault" not in line).encode()))
    assert not [figure for figure in ("12.2", "86.9", "8.69") if figure in text]


def made_at_boot(way, ms, asked="100%", ready=132194247, **more):
    words = " ".join(f"{key}={value}" for key, value in more.items())
    return BOOT.strip().replace("132194247", str(ready)) + f" memmap={way} memmap_asked={asked} memmap_threads=8 memmap_pages={1000 if ms else 0} memmap_ns={ms * 1000000} {words}".rstrip() + "\n"


def of_linux(series, *records):
    head = f"BENCH linux kernel={series}.4+deb13-cloud-amd64 cpus=2 ram_bytes=68718944256 what="
    return "".join(f"{head}{record}\n" for record in records) + "# capture ended linux\n# capture where tcg\n"


def test_each_kernel_beside_what_it_has(without_pictures):
    """HVO on: 6.1 is unbatched, 6.12 and 7.3 are batched. Faults: 7.3 clears by extents, 6.1 by pages. 1 GiB: 7.3 steps. Of three boots of
    the series' technique the median counts."""
    def linux(series, pools, fault, giga):
        return parse(of_linux(series, f"hvo optimise=1 op=alloc pages=64 done=64 run=1 ns={pools}", f"fault optimise=1 size=2M pages=4 done=4 run=1 ns={fault} unmap_ns=5",
                              f"giga optimise=0 op=alloc pages=10 done=10 total=10 ns={giga}", "boot_pool optimise=1 pages=64 done=64 ns=9000000 ready_ns=20000000",
                              "memmap ns=72000000", "ready ns=3000000000 pages=0").replace("cpus=2", "cpus=8").encode(), f"peer-{series}")  # fmt: skip

    contig = next(line for line in CONSOLE.splitlines(True) if "BENCH contig" in line)
    fault = "BENCH fault mode={} size=2M cpus=1 pages=4 faults=4 instructions=none ns={} clear_ns=3000 besides_ns=250 unmap_ns=5 unmap_rounds=1\n"
    searches = contig.replace("=index", "=skip").replace("ns_mean=200", "ns_mean=400") + contig.replace("=index", "=step")
    consoles = {
        "hvo": CONSOLE + searches,
        "fault-2-fault-erms-1": BOOT + fault.format("page", 8000) + fault.format("multi", 4000),
        "fault-2-fault-own-1": BOOT + fault.format("multi", 2000),
        "pools-8-pool-batched-1": made_at_boot("lazy", 0, hvo="batched", pool_pages=64, pool_ns=3000000),
        "pools-8-pool-on-1": made_at_boot("lazy", 0, hvo="on", pool_pages=64, pool_ns=1000000),
        "hvo-8-boot-eager-1": made_at_boot("eager", 24),
        **{f"hvo-8-boot-parallel-{turn}": made_at_boot("parallel", ms) for turn, ms in enumerate((48, 30, 36))},
    }
    ours = [parse((text.replace("=12884369408", "=68718944256") + PASSED).encode(), f"peer-{name}") for name, text in consoles.items()]
    text = report(linux("6.1", 640000 * 64, 16000, 8000), linux("6.12", 64000, 16000, 8000), linux("7.3", 32000, 8000, 4000), *ours)

    def beside(caption):
        rows = rows_in(text, caption)
        return {row["kernel"]: (row["Ashlar, same technique"], row["Linux : that"], row["Linux : ours"]) for row in rows}

    assert beside("A pool of 2 MiB pages grows") == {
        "Linux 6.1": ("unbatched 20.0", "32.0x", "12,800x"), "Linux 6.12": ("batched 0.100", "10.0x", "20.0x"), "Linux 7.3": ("batched 0.100", "5.00x", "10.0x")}
    assert beside("A region of huge pages is touched") == {
        "Linux 6.1": ("page 2.00", "2.00x", "8.00x"), "Linux 6.12": ("page 2.00", "2.00x", "8.00x"), "Linux 7.3": ("multi 1.00", "2.00x", "4.00x")}
    giga = {kernel: (same.split()[0], *ratios) for kernel, (same, *ratios) in beside("Pages of 1 GiB at run time").items()}
    assert giga == {"Linux 6.1": ("skip", "2.00x", "4.00x"), "Linux 6.12": ("skip", "2.00x", "4.00x"), "Linux 7.3": ("step", "2.00x", "2.00x")}
    pools = beside("A pool of 2 MiB pages made at boot")
    assert pools["Linux 6.1"] == ("-", "-", "9.00x") and pools["Linux 7.3"] == ("batched 3.00", "3.00x", "9.00x")
    assert set(beside("All struct pages at boot").values()) == {("parallel 36.0", "2.00x", "3.00x")}


def ready_boot(name, ms, **more):
    text = made_at_boot("lazy", 0, ready=ms * 1000000, **more).replace("=12884369408", "=68718944256")
    return parse((text.replace("started=8", "started=2") + PASSED).encode(), f"peer-ready-2-{name}")


def ready_boots():
    """Three turns: each kernel without a pool, with 4 pages of 1 GiB and with 64 of 2 MiB. The host is slower in each turn."""
    boots = []

    def add(name, text):
        boots.append(parse(text.encode(), f"peer-ready-2-linux-{name}"))

    for turn in (1, 2, 3):
        for series, later in (("6.1", 400), ("6.12", 200), ("7.3", 100)):
            slow = 5000 + 1000 * turn
            add(f"none-{turn}-{series}", of_linux(series, f"ready ns={slow}000000 hugetlb_ns={slow - 1000}000000 size=2M pages=0 done=0 optimise=0"))
            for size, pages in (("1G", 4), ("2M", 64)):
                for on in (0, 1):
                    ready = (f"ready ns={slow + 2 * later}000000 hugetlb_ns={slow - 1000 + later * (1 + on) + turn}000000"
                             f" size={size} pages={pages} done={pages} optimise={on}")  # fmt: skip
                    pool = f"boot_pool optimise={on} size={size} pages={pages} done={pages} ns=7000000 ready_ns=9"
                    add(f"{size}-{on}-{turn}-{series}", of_linux(series, ready, pool))
        for name, ms, more in (
            ("none", 0, {"hvo": "on"}),
            *((f"giga-{mode}", ms, {"hvo": mode, "pool_1g_pages": 4, "pool_1g_ns": 3000000})
              for mode, ms in (("off", 50), ("batched", 40), ("preinit", 20), ("on", 10))),
            *((f"full-{mode}", ms, {"hvo": mode, "pool_pages": 64, "pool_ns": 2000000}) for mode, ms in (("off", 25), ("batched", 80), ("on", 5))),
        ):  # fmt: skip
            boots.append(ready_boot(f"{name}-{turn}", 100 * turn + ms, **more))
    return boots


def test_how_much_later_a_pool_makes_it_ready(without_pictures):
    """The difference is taken within the same turns. Each Linux stands beside the mode that it has, and 1 GiB pages since 6.15 beside
    preinit."""
    text = report(*ready_boots())
    rows = rows_in(text, "Ready with a pool made at boot and without")
    one = next(row for row in rows if (row["kernel"], row["HVO"], row["pool"]) == ("Linux 6.12", "off", "4 x 1G"))
    assert (one["boots"], one["memory"], one["ready later by ms"]) == ("3", "64 GiB", "400 (400 to 400)")
    assert one["by the end of hugetlb_init"] == "202 (201 to 203)"
    ratios = {(row["kernel"], row["HVO"], row["pool"]): (row["Linux : same technique"], row["Linux : ours"]) for row in rows}
    for kernel, giga_off, giga_on, full_off, full_on in (
        ("6.1", ("8.04x", "40.2x"), ("-", "80.2x"), ("16.1x", "80.4x"), ("-", "160x")),
        ("6.12", ("4.04x", "20.2x"), ("10.1x", "40.2x"), ("8.08x", "40.4x"), ("5.03x", "80.4x")),
        ("7.3", ("2.04x", "10.2x"), ("10.1x", "20.2x"), ("4.08x", "20.4x"), ("2.52x", "40.4x")),
    ):
        found = [ratios[f"Linux {kernel}", on, pool] for pool in ("4 x 1G", "64 x 2M") for on in ("off", "on")]
        assert found == [giga_off, giga_on, full_off, full_on]
    ours = {(row["HVO"], row["pool"]): row["ready later by ms"] for row in rows if row["kernel"] == "Ashlar"}
    assert ours["preinit", "4 x 1G"] == "20.0 (20.0 to 20.0)" and ours["on", "64 x 2M"] == "5.00 (5.00 to 5.00)"
    assert "The newest is 7.3" in text
    assert not rows_in(text, "A pool of 2 MiB pages made at boot") and not rows_in(text, "All struct pages at boot"), "these boots have a table of their own"


def test_a_pool_that_was_not_made_has_no_time(without_pictures):
    """A pool of fewer pages is another pool. There is no ratio without boots that lack the pool, or within the noise."""
    boots = ready_boots()
    short = [parse(of_linux("6.12", "ready ns=9000000 hugetlb_ns=9000000 size=1G pages=4 done=3 optimise=0").encode(), f"peer-ready-2-linux-1G-0-{turn}-6.12")
             for turn in (1, 2, 3)]  # fmt: skip
    rest = [boot for boot in boots if not re.search("linux-1G-0-.-6.12|linux-none-.-7.3|full-on-1", boot.name)]
    noisy = ready_boot("full-on-1", 1, hvo="on", pool_pages=64, pool_ns=2)
    rows = rows_in(report(*rest, *short, noisy), "Ready with a pool made at boot and without")
    assert not any((row["kernel"], row["HVO"], row["pool"]) == ("Linux 6.12", "off", "4 x 1G") for row in rows)
    found = {row["kernel"]: row for row in rows if (row["HVO"], row["pool"]) == ("off", "64 x 2M")}
    assert (found["Linux 7.3"]["ready later by ms"], found["Linux 7.3"]["Linux : same technique"]) == ("-", "-")
    assert (found["Linux 6.12"]["Linux : same technique"], found["Linux 6.12"]["Linux : ours"]) == ("8.08x", "noise")


def test_page_fault1_beside_linux(without_pictures):
    """6.1 caches types, 6.12 and 7.3 look them up; the same instruction is one leg of Ashlar's, ours the other."""
    fault = "BENCH page_fault type_cache={} cpus={} run=1 region_bytes=134217728 touched=32768 ns={} ops=1 lookups=1 drain_lookups=0 drained=0\n"

    def ashlar(leg, slower):
        ns = {"on": 100000000, "first": 120000000, "each": 80000000, "off": 50000000}
        records = "".join(fault.format(way, cpus, ns[way] * slower) for way in ns for cpus in (1, 2))
        return parse((BOOT + records + PASSED).encode(), f"peer-page_fault1-2-fault1-{leg}-1")

    linux = [
        parse(of_linux(series, *(f"page_fault1 tasks={tasks} run=1 touched=32768 ns=800000000" for tasks in (1, 2))).encode(), f"peer-page_fault1-2-linux-1-{series}")
        for series in ("6.1", "6.12", "7.3")
    ]  # fmt: skip
    text = report(ashlar("erms", 2), ashlar("own", 1), *linux)
    beside = [list(row.values()) for row in rows_in(text, "page_fault1 (per-CPU list series)")]
    looks_up = ["24,414", "each 4,883", "5.00x", "1,526", "16.0x"]
    assert [row[:2] + row[3:] for row in beside if row[1] == "1"] == [
        ["Linux 6.1", "1", "24,414", "on 6,104", "4.00x", "1,526", "16.0x"], ["Linux 6.12", "1", *looks_up], ["Linux 7.3", "1", *looks_up]]
    assert [row[1] for row in beside] == ["1"] * 3 + ["2"] * 3
    assert "Per-CPU list series: per-CPU page lists" not in text, "what ran with another instruction is not taken for the seed's table"


def test_each_table_of_linux_has_both_sides():
    """Every leg of a turn: each available kernel, and Ashlar beside it."""
    had = [("6.12", "k", "i"), ("7.3", "k", "i")]
    for name in bench_linux.TABLES:
        made = list(bench_linux.legs_of(name, had, "tsc_early_khz=1"))
        assert {leg.kernel for leg in made} == {"", "k"} and len({leg.name for leg in made}) == len(made)
        assert all("linux" in leg.name for leg in made if leg.cmdline.endswith(" tsc_early_khz=1"))


def test_the_seeds_columns_of_s1(without_pictures):
    """`kernel boot` and first touch come from boots. A speedup within the noise is not printed. Published speedups are for the same
    share."""
    boots = "# capture boots 6\n" + "".join(
        made_at_boot("serial", 30 + n, ready=200000000 + n * 1000000) + "ASHLAR-END verdict=pass code=0x10\n"
        + made_at_boot("parallel", 10 + n, ready=100000000 + n * 1000000) + "ASHLAR-END verdict=pass code=0x10\n" for n in range(3))  # fmt: skip
    text = report(parse(CONSOLE.encode(), "memmap-8"), parse((boots + "# capture where tcg\n").encode(), "memmap-boots-8"))
    serial, one, both, eager = (list(row.values())[4:] for row in rows_in(text, "Ours: the slowest node"))
    assert serial[:2] + serial[3:4] + serial[6:] == ["--", "201 (1.00)", "--", "18.0", "31,000 (1,000)", "3 / 7"]
    assert one[3] == "noise" and one[0] == "-" and one[2] == "-3.3 to 1.4 %"
    assert both[:2] == ["49.8 %", "101 (1.00)"] and both[3] == "50.0 %" and both[5] == "55.9 to 91.9 %" and both[8] == "3 / 7"
    assert (eager[3], eager[6]) == ("66.7 %", "6.00")


def test_time_of_the_simulation_is_taken_off(without_pictures):
    """off: 6400 ns for 64 pages, of which 3200 are simulation: 0.05 us net. batched: 3200 ns of 1600. More simulation than time gives 0."""
    spent = {"off": 3200, "batched": 1600, "on": 9999}
    text = BOOT + "".join(
        HVO.format(mode, op, 1, 1, ns).replace("\n", f" simulated_ns={spent[mode]} host_faults=0\n")
        for mode, ns in (("off", 6400), ("batched", 3200), ("on", 1600)) for op in ("alloc", "free"))  # fmt: skip
    native = report(parse((text + "# capture where native\n").encode()))
    nets = {row["mode"]: (row["net us/page"], row["net mode:off"]) for row in rows_in(native, HVO_TABLE, machine="hosted, native", op="alloc")}
    assert nets == {"off": ("0.0500", "1.00x"), "batched": ("0.0250", "0.500x"), "on": ("0", "0x")}
    emulated = rows_in(report(parse((text + "# capture where tcg\n").encode())), HVO_TABLE, machine="QEMU, emulated")
    assert {(row["net us/page"], row["net mode:off"]) for row in emulated} == {("-", "-")}


def test_pools_at_boot_stand_beside_the_same_boot_without(without_pictures):
    """Ready after 100 ms, with a pool made by batched after 300; such boots are none of the memmap series'."""
    boots = [made_at_boot("parallel", 40, ready=ms * 1000000, hvo="on") for ms in (90, 100, 110)]
    for mode, ms, bare in (("batched", 300, 0), ("on", 250, 0), ("on", 120, 4)):  # the last one not made yet
        pool = {"hvo": mode, "pool_1g_pages": 4, "pool_1g_ns": (ms - 100) * 1000000, "pool_bare": bare}
        boots += [made_at_boot("parallel", 40, ready=ms * 1000000, **pool)] * 3
    console = "# capture boots 12\n" + PASSED.join(boots) + PASSED
    text = report(parse(console.encode(), "pools-64"))
    assert [list(row.values())[4:] for row in rows_in(text, "Pools made at boot")] == [
        ["-", "none", "3", "-", "100 (90.0 to 110)", "-"],
        ["hvo=batched", "4 of 1 GiB", "3", "200 (200 to 200)", "300 (300 to 300)", "3.00x (2.73 to 3.33)"],
        ["hvo=on", "4 of 1 GiB", "3", "150 (150 to 150)", "250 (250 to 250)", "2.50x (2.27 to 2.78)"],
        ["hvo=on, bare", "4 of 1 GiB", "3", "20.0 (20.0 to 20.0)", "120 (120 to 120)", "1.20x (1.09 to 1.33)"],
    ]
    assert "Memmap series:" not in text


def test_other_work_is_told(without_pictures):
    """The work on the host just before a run, without the runs themselves."""
    assert 0 <= legs.busy_cpus(0.05) <= (os.cpu_count() or 1)
    for busy, told in (("0.10", False), ("1.50", True)):
        text = report(parse((CONSOLE + f"# capture busy {busy}\n").encode()))
        assert ("other work" in text.split("Summary")[0]) == told


def test_words_of_a_console_are_no_markup(without_pictures):
    """Text from a machine is shown, never obeyed."""
    evil = "# capture host <script>alert(1)</script>|*x*\n# capture command <img src=//x>\n  cpu      \"><b>bold\n" + CONSOLE
    paper = make([parse(evil.encode(), "<i>name")])
    assert not {"script", "img", "b", "i"} & set(tags(page_of(to_html(paper))))
    names = parse(b"# capture where ../../x\n" + CONSOLE.encode())
    assert names.where == "tcg"
    assert "<script>" not in to_markdown(paper).replace("\\<", "")


def test_any_bytes_make_a_page(without_pictures):
    """Consoles cut, doubled and with bytes changed, as a serial line does it: never an exception."""
    rng = random.Random(7)
    linux = of_linux("7.3", "hvo optimise=1 op=alloc pages=64 done=64 run=1 ns=64000", "memmap ns=72000000", "ready ns=3000000000 pages=0")
    for turn in range(60):
        data = bytearray((CONSOLE + linux + "# capture busy 1.50\n").encode())
        for _ in range(rng.randrange(1, 30)):
            at = rng.randrange(len(data))
            del data[at : at + rng.choice((0, 1, 1, 40, 300))]
            data[at:at] = rng.choice((b"", b"\n", b"\xff", b"\x1b[2J", b"BENCH hvo mode=", b"\r", b"0"))
        capture = parse(bytes(data), "noisy")
        paper = make([capture])
        if turn % 10 == 0:
            page_of(to_html(paper))
    page_of(to_html(make([parse(bytes(rng.randrange(256) for _ in range(4096)))])))


# Looks at the page at three widths: what is wider than the window, and tables of which a part cannot be brought into sight.
LOOK = """<script>
addEventListener("load", () => {
  const frame = document.querySelector("iframe"), page = frame.contentDocument, wrong = [];
  const say = (what, box) => wrong.push(frame.width + ": " + what + ": " + (box.ariaLabel || box.textContent.slice(0, 40)));
  for (frame.width of [400, 800, 1400]) {
    if (page.documentElement.scrollWidth > frame.width) say("page too wide", page.body);
    for (const e of page.querySelectorAll("main > :not(.table), figure > *"))
      if (e.scrollWidth > e.clientWidth) say("clipped", e);
    for (const box of page.querySelectorAll(".table")) {
      if (box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX != "auto") say("cannot be scrolled", box);
      box.scrollLeft = 1e6;
      const [right, left] = ["thead th:last-child", "tbody td"].map(cell => box.querySelector(cell).getBoundingClientRect());
      if (right.right > box.getBoundingClientRect().right) say("its last column stays hidden", box);
      if (left.left < box.getBoundingClientRect().left) say("its first column goes", box);
    }
  }
  document.title = "looked at: " + wrong.join(" | ");
  frame.remove();
});
</script>"""


def looked_at(page, folder):
    """What a browser finds wrong with the layout of a page."""
    (folder / "look.html").write_text(f'{LOOK}<iframe height="900" srcdoc="{html.escape(page)}"></iframe>', encoding="utf-8")
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile", "--virtual-time-budget=60000", "--dump-dom"]
    argv = ["chromium", *words, (folder / "look.html").as_uri()]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=True)
    return re.search("<title>looked at: (.*?)</title>", done.stdout, re.S)[1].split(" | ")


def test_nothing_is_clipped_in_a_browser(tmp_path):
    """At 400, 800 and 1400 pixels. A page that cuts off its tables is noticed."""
    if not shutil.which("chromium"):
        skip_machine(SimpleNamespace(name="browser"), "Chromium is not installed: apt-get install chromium")
    page = to_html(make([parse((CONSOLE + RESULTS).encode(), "one"), *ready_boots()]))
    assert looked_at(page, tmp_path) == [""]
    cut = page.replace("overflow-x: auto;", "overflow-x: hidden;").replace("position: sticky;", "")
    assert {"cannot be scrolled", "its first column goes"} <= {wrong.split(": ")[1] for wrong in looked_at(cut, tmp_path)}


def test_a_benchmark_of_ones_own_has_a_table(without_pictures):
    """And a line of it that is torn is named."""
    text = report(parse("BENCH stride8 stride=64 run=1 ns=5\nBENCH stride8 stride=64 run=2 ns\n".encode(), "mine"))
    assert [list(row.values())[2:] for row in rows_in(text, "`stride8`")] == [["64", "1", "5"]] and "The first: mine:2." in text


RESULTS = (
    "RESULT gups leaf=4K cpus=4 table_bytes=268435456 updates=1000000 ns=5000\n"
    "RESULT gups leaf=2M cpus=4 table_bytes=268435456 updates=1000000 ns=2000 note=warm\n"
    "RESULT hvo mode=7 pages=many\nASHLAR-END verdict=pass code=0x10\n"
)


def test_programs_results_have_tables_of_their_own(without_pictures):
    """A name of the kernel's records means nothing here, and columns are the keys, words first."""
    capture = parse((BOOT + RESULTS).encode(), "mine")
    assert (kinds(capture), capture.torn) == (["boot", "result gups", "result gups", "result hvo"], 0)
    whole = report(capture)
    assert "HVO series:" not in whole
    gups = rows_in(whole, "`gups`")
    assert list(gups[0])[2:] == ["leaf", "note", "cpus", "table_bytes", "updates", "ns"]
    same = ["4", "268,435,456", "1,000,000"]
    assert [list(row.values())[2:] for row in gups] == [["4K", "-", *same, "5,000"], ["2M", "warm", *same, "2,000"]]
    assert [list(row.values())[2:] for row in rows_in(whole, "`hvo`")] == [["many", "7"]]
    torn = parse((RESULTS.replace("ns=5000", "ns 5000") + "RESULT gups ns=1").encode())
    assert (kinds(torn), torn.torn) == (["result gups", "result hvo"], 2)


def test_the_command(tmp_path):
    """The report has pictures if they can be drawn, and else the reason why they cannot."""
    console = tmp_path / "serial.log"
    console.write_text("".join(line for line in CONSOLE.splitlines(True) if "hvo" in line or "END" in line or "boot" in line), encoding="ascii")
    done = subprocess.run([ROOT / "tests/bench/report", "--out", tmp_path, console], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    page, text = page_of((tmp_path / "report.html").read_text(encoding="utf-8"), {"serial.log"}), (tmp_path / "report.md").read_text(encoding="utf-8")
    pictured = (tmp_path / "hvo-grow.svg").exists()
    assert pictured == any(tag.endswith("svg") for tag in tags(page)) != ("No pictures" in text)
    none = subprocess.run([ROOT / "tests/bench/report", "--out", tmp_path, "/dev/null"], capture_output=True, timeout=600, check=False)
    assert none.returncode == 1


def lines_of(name):
    return [line for line in (ROOT / "tests/report" / name).read_text(encoding="utf-8").splitlines() if line and line[0] not in "#["]


def test_no_line_of_the_data_is_passed_over():
    """A line of another shape would be a leg, a key or a paragraph less, and nobody would see it."""
    assert sum(line[0] != " " for line in lines_of("legs.txt")) == len(legs.LEGS + legs.ON_REQUEST)
    assert not re.search(r"^(?:#.*)?\n +", (ROOT / "tests/report/legs.txt").read_text(encoding="utf-8"), re.M), "a boot of no leg"
    assert len(lines_of("linux.txt")) == sum(len(words) for *_, sides in bench_linux.TABLES.values() for words in sides.values())
    assert sum(line.count(":") for line in lines_of("needed.txt")) == sum(len(keys) for keys in NEEDED.values())
    assert len(lines_of("prose.txt")) == sum(text.count("\n") + 2 for text in words.PROSE.values())
