"""The report: what counts as a record, that any console makes a whole page, that the page needs nothing but itself."""

import os
import random
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from machine import ROOT

sys.path.insert(0, str(ROOT / "tests/report"))

import legs  # noqa: E402
import pictures  # noqa: E402
import sweep  # noqa: E402
from document import make  # noqa: E402
from paper import to_html, to_markdown  # noqa: E402
from records import Spread, parse  # noqa: E402

HVO = ("BENCH hvo mode={} source=fresh op={} size=2M pages=64 done=64 cpus={} busy=0 run={} ns={} flushes=2 splits=1 ipis=14 interrupted=7 skipped=0"
       " frames_saved=447 debt_open_ns=1000 debt_split_ns=2000 debt_blocks=64\n")  # fmt: skip
BOOT = "BENCH boot firmware=pvh cpus_found=8 cpus_started=8 nodes=1 ram_bytes=12884369408 ns_to_ready=132194247 memmap_bytes=253952\n"
CONSOLE = (
    "QEMU 7, tcg,thread=multi, pvh-8cpu-12G. Ctrl-A X quits.\n" + BOOT
    + "".join(HVO.format(mode, op, 8, run, ns * run) for mode, ns in (("off", 6400), ("unbatched", 640000), ("batched", 3200), ("on", 1600))
              for op in ("alloc", "free") for run in (1, 2, 3))
    + "BENCH memmap mode=serial node=0 threads=1 pages=1000 ns=18000 ns_sd=10 chunks_min=1 chunks_max=1 asked=0\n"
    "BENCH memmap mode=parallel node=0 threads=2 pages=1000 ns=9000 ns_sd=10 chunks_min=1 chunks_max=1 asked=100%\n"
    "BENCH memmap mode=lazy node=0 threads=1 pages=1000 ns=100 ns_sd=0 chunks_min=0 chunks_max=0\n"
    "BENCH clear mode=page insn=nt size=2M hint=0 bytes=2097152 ns=300000 pmu=none threads=1\n"
    "BENCH clear mode=multi insn=nt size=2M hint=0 bytes=2097152 ns=200000 pmu=none threads=1\n"
    "BENCH fault mode=multi size=2M cpus=1 pages=4 faults=4 instructions=none ns=4000 clear_ns=3000 besides_ns=250 unmap_ns=5 unmap_rounds=1\n"
    "BENCH pcp type_cache=on pages=10000 run=1 ns_alloc=7.017 ns_free=7.080 lookups=9 freed=9 drain_lookups=0 stale=1000 ns_fault=0\n"
    "BENCH pcp type_cache=off pages=10000 run=1 ns_alloc=7.000 ns_free=7.000 lookups=9 freed=9 drain_lookups=0 stale=0 ns_fault=0\n"
    "BENCH contig mode=index memory=fresh step=10 total=10 ns_min=100 ns_mean=200 ns_p25=150 ns_p50=190 ns_p75=210 ns_p90=300 ns_p95=300"
    " ns_p99=300 ns_max=300 scanned_pages=0 migrated_pages=0 candidates=1 verified=1\n"
    "BENCH alloc test=pair0 threads=1 op=pair ns=18.833\nBENCH probe name=ring test=pair0 threads=1 op=pair ns=6.548\n"
    "ASHLAR-END verdict=pass code=0x10\n"
)  # fmt: skip


def kinds(capture):
    return [record.kind for record in capture.records]


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


def test_two_records_on_one_line():
    """The first lost its end, the second is whole."""
    capture = parse((HVO.format("off", "alloc", 8, 1, 6400)[:90] + BOOT).encode())
    assert (kinds(capture), capture.torn) == (["boot"], 1)


def test_the_last_line_may_go_on():
    """ns=132 may have been ns=132194: without its newline a line is not whole."""
    capture = parse(("BENCH alloc test=pair0 threads=1 op=pair ns=18\n" + "BENCH alloc test=pair0 threads=1 op=pair ns=1").encode())
    assert (len(capture.records), capture.torn) == (1, 1)


def test_how_a_run_ended():
    assert parse(CONSOLE.replace("verdict=pass", "verdict=crash").encode()).problem == "verdict crash"
    assert parse(BOOT.encode()).problem == "it ended without a verdict"
    assert parse((CONSOLE + "# capture failed stopped\n").encode()).problem == "stopped"


def test_spread():
    assert (Spread([3, 1, 2]).median, Spread([4, 1, 2, 3]).median, Spread([3, 1, 2]).low, Spread([3, 1]).high) == (2, 2.5, 1, 3)


LINUX = "".join(
    f"BENCH linux kernel=6.12.107+deb13-cloud-amd64 cpus=8 ram_bytes=12000000000 what=hvo optimise={on} op={op} pages=64 done=64 run=1 ns={ns}\n"
    for on, ns in ((0, 12800), (1, 64000)) for op in ("alloc", "free")
) + (
    "BENCH linux kernel=6.12.107+deb13-cloud-amd64 cpus=8 ram_bytes=12000000000 what=giga optimise=0 op=alloc pages=10 done=10 total=10 ns=4000\n"
    "BENCH linux kernel=6.12.107+deb13-cloud-amd64 cpus=8 ram_bytes=12000000000 what=memmap ns=72000000\n# capture ended linux\n# capture where tcg\n"
)  # fmt: skip


class Page(HTMLParser):
    """Every element is closed in its order, and nothing is fetched."""

    VOID = {"meta", "br", "link", "img"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.text = [], [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for key, value in attrs:
            assert key not in ("src", "srcset", "onload") and (key != "href" or value.startswith("#")), (tag, key, value)
            assert key != "xlink:href" or value.startswith("#"), value
            self.ids += [value] if key == "id" else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def without_pictures(monkeypatch):
    monkeypatch.setattr(pictures, "matplotlib", None)


def test_the_page_is_whole(without_pictures):
    paper = make([parse(CONSOLE.encode(), "one")])
    page = Page(to_html(paper))
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert len(page.ids) == len(set(page.ids))
    text = " ".join(page.text)
    for word in ("S0:", "S1:", "S2:", "S3:", "S4:", "The page allocator", "Not comparable", "No pictures"):
        assert word in text, word
    assert text.count("published") > 10 and "100x" in text  # unbatched against off
    assert to_markdown(paper).count("\n## ") == page.tags.count("h2")


def test_ratios_are_those_of_the_medians(without_pictures):
    """off: 6400, 12800, 19200 ns for 64 pages; unbatched a hundred times, batched a half, on a quarter."""
    table = next(line for line in to_markdown(make([parse(CONSOLE.encode())])).splitlines() if "memory fresh" in line)
    assert [cell.strip() for cell in table.split("|")[5:11]] == ["100x", "100x", "0.500x", "0.500x", "0.250x", "0.250x"]


def test_runs_of_other_sizes_are_not_mixed(without_pictures):
    """off with 128 pages takes ten times as long each: another row, and no part of this one's median."""
    slow = "".join(line.replace("pages=64 done=64", "pages=128 done=128") for line in CONSOLE.splitlines(True) if "hvo" in line)
    slow = slow.replace("ns=6400 ", "ns=128000 ").replace("ns=12800 ", "ns=128000 ") + "ASHLAR-END verdict=pass code=0x10\n# capture where tcg\n"
    text = to_markdown(make([parse(CONSOLE.encode(), "a"), parse(slow.encode(), "b")]))
    rows = [[cell.strip() for cell in line.split("|")[4:6]] for line in text.splitlines() if "memory fresh" in line]
    assert rows == [["64", "100x"], ["128", "10.0x"]]


def test_linux_beside(without_pictures):
    """off here 200 ns a page, there 400 ns; on there 1000 ns, batched here 100 ns, ours 50 ns."""
    linux = parse(LINUX.encode(), "linux")
    assert (linux.problem, linux.torn) == ("", 0)
    text = to_markdown(make([parse(CONSOLE.encode()), linux]))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| Linux 6.12 | 8")]
    alloc = {row[2]: row for row in rows if row[3] == "alloc"}
    assert alloc["off"][7:10] == ["1.00x", "off 0.200", "1.00x"]
    assert alloc["on"][6:] == ["1.00", "5.00x", "batched 0.100", "10.0x", "0.0500", "20.0x"]
    assert any(row[-1] == "2.00x" and row[3] == "10" for row in rows), text  # a page of 1 GiB


def test_boots_beside_linux(without_pictures):
    """72 ms there, 30, 36 and 48 here."""
    ours = [parse((BOOT + f"[    0.1] memmap: node 0: 92 sections in {ms}.000 ms by 8 threads, 3 to 5 chunks each\n").encode()) for ms in (48, 30, 36)]
    text = to_markdown(make([parse(LINUX.encode(), "linux")] + ours))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if "| 12 GiB |" in line]
    assert rows == [
        ["Ashlar, memmap=parallel", "8", "12 GiB", "3", "36.0 (30.0 to 48.0)", "-", "132 (132 to 132)"],
        ["Linux 6.12", "8", "12 GiB", "1", "72.0", "2.00x", "-"],
    ]


def test_other_work_is_told(without_pictures):
    """What was busy just before a run, not the runs themselves."""
    assert 0 <= legs.busy_cpus(0.05) <= (os.cpu_count() or 1)
    for busy, told in (("0.10", False), ("1.50", True)):
        text = to_markdown(make([parse((CONSOLE + f"# capture busy {busy}\n").encode())]))
        assert ("other work" in text.split("Summary")[0]) == told


def test_words_of_a_console_are_no_markup(without_pictures):
    """What comes from a machine is shown, never obeyed."""
    evil = "# capture host <script>alert(1)</script>|*x*\n# capture command <img src=//x>\n  cpu      \"><b>bold\n" + CONSOLE
    paper = make([parse(evil.encode(), "<i>name")])
    page = Page(to_html(paper))
    assert not {"script", "img", "b", "i"} & set(page.tags)
    names = parse(b"# capture where ../../x\n# capture sweep a=$\\frac\n" + CONSOLE.encode())
    assert names.where == "tcg" and "sweep" not in names.facts
    assert "<script>" not in to_markdown(paper).replace("\\<", "")


def test_any_bytes_make_a_page(without_pictures):
    """Consoles cut, doubled and with bytes changed, as a serial line does it: never an exception."""
    rng = random.Random(7)
    for turn in range(60):
        data = bytearray((CONSOLE + LINUX + "# capture sweep CPUS=8\n# capture busy 1.50\n").encode())
        for _ in range(rng.randrange(1, 30)):
            at = rng.randrange(len(data))
            del data[at : at + rng.choice((0, 1, 1, 40, 300))]
            data[at:at] = rng.choice((b"", b"\n", b"\xff", b"\x1b[2J", b"BENCH hvo mode=", b"\r", b"0"))
        capture = parse(bytes(data), "noisy")
        paper = make([capture])
        if turn % 10 == 0:
            Page(to_html(paper))
    Page(to_html(make([parse(bytes(rng.randrange(256) for _ in range(4096)))])))


def test_a_run_that_failed_is_named(without_pictures):
    failed = parse((BOOT + "# capture failed it took longer than it may\n").encode(), "hvo-8")
    assert "hvo-8: it took longer than it may" in to_html(make([failed, parse(CONSOLE.encode(), "other")]))


def test_the_command(tmp_path):
    """With pictures where they can be drawn, and why not where they cannot."""
    console = tmp_path / "serial.log"
    console.write_text("".join(line for line in CONSOLE.splitlines(True) if "hvo" in line or "END" in line or "boot" in line), encoding="ascii")
    done = subprocess.run([ROOT / "tests/bench/report", "--out", tmp_path, console], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    page, text = Page((tmp_path / "report.html").read_text(encoding="utf-8")), (tmp_path / "report.md").read_text(encoding="utf-8")
    pictured = (tmp_path / "hvo-grow.svg").exists()
    assert pictured == ("svg" in page.tags) != ("No pictures" in text) and len(page.ids) == len(set(page.ids))
    none = subprocess.run([ROOT / "tests/bench/report", "--out", tmp_path, "/dev/null", "--no-pictures"], capture_output=True, timeout=60, check=False)
    assert none.returncode == 1


@pytest.mark.parametrize("words, names", [
    (["CPUS=2,8", "BENCH=hvo"], ["hvo-CPUS-2", "hvo-CPUS-8"]),
    (["pages=64,256", "CPUS=4", "MEM=4G", "runs=1"], ["hvo-pages-64", "hvo-pages-256"]),
])  # fmt: skip
def test_sweep(words, names):
    made = [leg for leg, _ in sweep.legs_of("hvo", words)]
    assert [leg.name for leg in made] == names
    assert [leg.cpus for leg in made] == ([2, 8] if words[0].startswith("CPUS") else [4, 4])
    if len(words) == 4:
        assert [leg.cmdline for leg in made] == ["bench=hvo runs=1 pages=64", "bench=hvo runs=1 pages=256"] and made[0].mem == "4G"


@pytest.mark.parametrize("words", [[], ["CPUS=2"], ["CPUS=2,4", "MEM=1G,2G"], ["T=a,b"], ["FOO=1", "CPUS=2,4"], ["CPUS=a,b"], ["pages=,"]])
def test_no_sweep(words):
    with pytest.raises((sweep.Wrong, ValueError)):
        list(sweep.legs_of("hvo", words))


def test_sweep_section(without_pictures):
    captures = [parse(CONSOLE.replace("pages=64", f"pages={n}").encode() + f"# capture sweep pages={n}\n".encode(), f"p{n}") for n in (64, 128)]
    text = to_markdown(make(captures))
    assert "## Sweep: pages = 64, 128" in text and re.search(r"\| hvo on alloc \| 0.0500", text)
