"""BENCH and RESULT records from any captured console, or from the records.jsonl that export.py wrote: pure functions over bytes.

A console may hold anything beside records: escape sequences, remains of the firmware's output, CRLF, the kernel's log, another run, bytes
that a serial line lost or added. A line counts as a record only if it is whole: it ended with a newline, every word is `key=value`, no key
comes twice, and the keys with which this report computes are there and have values of the right kind. A line that begins as a record and is
not whole is counted as torn and used for nothing, so a figure is either right or missing.

The record format: tests/README.md. Keys may be added; unknown kinds and keys are kept. BENCH records are those of the kernel, RESULT
records those of programs that are linked to it: the kind of `RESULT name ...` is "result name". Settings come first. The number of the
run, or without one the first time, ends them, and the numbers behind it were measured.
"""

import itertools
import json
import math
import re
import statistics
from dataclasses import dataclass, field
from pathlib import Path

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1bc")
WORD = re.compile(r"([a-z][a-z0-9_]{0,31})=(\S{1,200})")
NUMBER = re.compile(r"-?\d{1,19}(?:\.\d{1,9})?")
NAME = re.compile(r"[A-Za-z0-9][\w.+-]{0,31}")
KIND = re.compile(r"[a-z][a-z0-9_]{1,19}")
RUN = re.compile(r"run|turn")
TIME = re.compile(r"ns|ns_\w+|\w+_ns")
LINE_MAX = 2000
START = re.compile(r"(?:BENCH|RESULT) ")
LAUNCHER = re.compile(r"^QEMU (\d+), ([\w,=]+), (\S+)\. Ctrl-A X quits\.$")
WHERES = "hardware|native|kvm|tcg|icount|virtual"
END = re.compile(r"ASHLAR-END verdict=([a-z]+) ")
CAPTURE = re.compile(r"^# capture ([a-z]+) (.+)$")

# Keys with which this report computes: {kind: {key: what its value is}}.
NEEDED = {
    kind: dict(re.findall(r"(\w+):(\w)", keys))
    for kind, keys in re.findall(r"^(\w+)((?:\s+\w+:\w)+)$", Path(__file__).with_name("needed.txt").read_text(encoding="utf-8"), re.M)
}

# Keys that are counts in every record.
NUMBERS = (
    *("bytes", "cpus", "done", "optimise", "pages", "ram_bytes", "tasks", "threads", "total", "touched", "day", "large", "small"),
    *("pool_pages", "pool_ns", "pool_1g_pages", "pool_1g_ns", "pool_bare", "hugetlb_ns", "median_ns", "cpu_ns", "back_ms", "all_ms"),
)


@dataclass
class Record:
    kind: str
    values: dict
    capture: "Capture"
    line: int = 0
    boot: int = 0  # of those in the console

    @property
    def settings(self):
        """What was measured: the words and numbers before the number of the run, or before the first time."""
        first = itertools.takewhile(lambda pair: not (RUN.fullmatch(pair[0]) or TIME.fullmatch(pair[0])), self.values.items())
        return {key: value for key, value in first if key != "warm"}

    @property
    def is_cold(self):
        """Whether the leg says that no leg before it had touched as much memory."""
        return self.values.get("warm") == "no"

    @property
    def measured(self):
        rest = self.values.keys() - self.settings.keys()
        return {key: value for key, value in self.values.items() if key in rest and not RUN.fullmatch(key) and not isinstance(value, str)}

    def __getitem__(self, key):
        return self.values[key]

    def get(self, key, default=None):
        return self.values.get(key, default)


@dataclass
class Capture:
    """One console. `facts` are the facts known about the machine and the run; `where` is tcg, kvm, icount, native or hardware."""

    name: str
    records: list = field(default_factory=list)
    facts: dict = field(default_factory=dict)
    verdict: str = ""  # of several boots, the first bad one, else the last one
    ended: int = 0  # boots that came to a verdict
    path: str = ""  # of the console, as the page finds it
    torn_at: list = field(default_factory=list)  # the line of each torn record, the first is 1

    @property
    def torn(self):
        return len(self.torn_at)

    @property
    def where(self):
        return self.facts.get("where", "unknown")

    @property
    def busy(self):
        """How many CPUs other work kept busy just before the run, or None."""
        busy = self.facts.get("busy", "")
        return float(busy) if re.fullmatch(r"\d{1,4}\.\d{1,9}", busy) else None

    @property
    def boots(self):
        """How many boots were meant to be in this console."""
        return int(self.facts["boots"]) if re.fullmatch(r"\d{1,6}", self.facts.get("boots", "")) else 1

    @property
    def problem(self):
        """The reason not to trust this run as a whole, or ""."""
        if "failed" in self.facts:
            return self.facts["failed"]
        if self.facts.get("ended"):  # a kernel other than Ashlar has a last word of its own
            return ""
        if self.verdict not in ("pass", "skipped"):
            return f"verdict {self.verdict}" if self.verdict else "it ended without a verdict"
        if self.ended < self.boots:
            return f"{self.ended} of {self.boots} boots came to a verdict"
        return ""


def value_of(text):
    if not NUMBER.fullmatch(text):
        return text
    return float(text) if "." in text else int(text)


def is_what_it_should_be(value, what):
    if what == "w":
        return bool(NAME.fullmatch(value))
    return not isinstance(value, str) and math.isfinite(value) and {"i": True, "n": value >= 0, "t": value > 0}[what]


def parse_record(text):
    """(kind, values) of the text from "BENCH " or "RESULT " on, or None if it is torn."""
    words = text[:LINE_MAX].split()
    if len(text) > LINE_MAX or len(words) < 2 or not KIND.fullmatch(words[1]):
        return None
    own = words[0] == "RESULT"
    needed = {} if own else NEEDED.get(words[1], {})
    values = {}
    for word in words[2:]:
        match = WORD.fullmatch(word)
        if not match or match[1] in values:
            return None
        values[match[1]] = match[2] if needed.get(match[1]) == "w" else value_of(match[2])
    for key, what in (needed | NEEDED.get(f"{words[1]}_{values.get('what')}", {})).items():
        if key not in values or not is_what_it_should_be(values[key], what):
            return None
    if not own and any(isinstance(values.get(key), str) for key in NUMBERS):
        return None
    return (f"result {words[1]}" if own else words[1], values) if values else None


def learn(capture, line):
    facts = capture.facts
    if match := LAUNCHER.match(line):
        accel = match[2].partition(",")[0]
        facts.update(where="icount" if "single" in match[2] else accel, machine=match[3], qemu=match[1])
    elif match := CAPTURE.match(line):
        facts[match[1]] = match[2][:300]
    elif match := END.search(line):
        capture.ended += 1
        if capture.verdict in ("", "pass", "skipped"):
            capture.verdict = match[1]
    elif match := re.match(r"^  (boot|cpu|features|memory) {3,}(.{1,200})$", line):
        facts.setdefault(match[1], match[2])


def settle(capture):
    """The place of the run, if no line states it: the hosted machine names its loader, and a hypervisor shows in CPUID."""
    facts = capture.facts
    for record in capture.records:
        if record.kind in ("boot", "linux"):
            facts.setdefault("cpus", record["cpus_started" if record.kind == "boot" else "cpus"])
            if "ram_bytes" in record.values:
                facts.setdefault("ram_bytes", record["ram_bytes"])
    # It becomes a part of names of files, so other characters are refused.
    if not re.fullmatch(WHERES, facts.get("where", "")):
        facts.pop("where", None)
    if "hosted runner" in facts.get("boot", ""):
        facts.setdefault("where", "native")
    if "features" in facts:
        virtual = "hypervisor" in facts["features"].split()
        emulated = "TCG" in facts.get("cpu", "")
        facts.setdefault("where", "tcg" if emulated else "virtual" if virtual else "hardware")


def parse(data, name="console"):
    """A Capture from the bytes of one console."""
    capture = Capture(name)
    text = ESCAPES.sub("", data.decode("utf-8", "replace")).replace("\x00", "")
    lines = re.split(r"\r*\n", text)
    for number, line in enumerate(lines[:-1], 1):  # the last line has no newline, so it may be incomplete
        starts = [match.start() for match in START.finditer(line)]
        if not starts:
            learn(capture, line.rstrip("\r"))
            continue
        parsed = parse_record(line[starts[-1]:].rstrip("\r"))
        if parsed:
            capture.records.append(Record(*parsed, capture, number, capture.ended))
        capture.torn_at += [number] * (len(starts) - bool(parsed))
    capture.torn_at += [len(lines)] * bool(START.search(lines[-1]))
    settle(capture)
    return capture


def json_words(line):
    """The keys and values of a line of records.jsonl, as the text of a console has them; {} of any other line."""
    try:
        values = json.loads(line, parse_int=str, parse_float=lambda text: f"{float(text):.9f}")
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) and all(isinstance(value, str) for value in values.values()) else {}


def json_record(words):
    """(kind, values), read as the line of the console was; None if it is no record."""
    kind = words.get("record.kind", "")
    head = f"RESULT {kind.removeprefix('result ')}" if kind.startswith("result ") else f"BENCH {kind}"
    return parse_record(" ".join([head, *(f"{key}={value}" for key, value in words.items() if "." not in key)]))


def parse_json(data, name):
    """The Captures of a records.jsonl. A line that is neither a record, a case nor the end is torn, of a Capture with the file's name."""
    found = {name: Capture(name, verdict="pass", ended=1)}
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        words = json_words(line)
        if "case" in words or "verdict" in words:  # tests/run --json writes these, too
            continue
        parsed = json_record(words)
        if not parsed:
            found[name].torn_at.append(number)
            continue
        facts = {key.removeprefix("console."): value for key, value in words.items() if key.startswith("console.")}
        facts["cpus"] = value_of(facts.get("cpus", "?"))
        console = facts.pop("name", name)
        capture = found.setdefault(console, Capture(console, facts=facts, verdict="pass", ended=1))
        capture.records.append(Record(*parsed, capture, number, words.get("record.boot", 0)))
    for capture in found.values():
        settle(capture)
    return list(found.values())


def parse_file(path):
    """The Captures of a file: a console is one."""
    data = path.read_bytes()
    return parse_json(data, str(path)) if data.lstrip().startswith(b"{") else [parse(data, str(path))]


def mode_at_boot(boot):
    """hvo= of a boot's pools. Pages that stay bare are not made, which is no other mode but other work."""
    return f"{boot.get('hvo')}, bare" if boot.get("pool_bare") else str(boot.get("hvo"))


def of_kind(captures, kind, **wanted):
    """Records of a kind whose keys have these values, over all captures, in order."""
    return [
        record
        for capture in captures
        for record in capture.records
        if record.kind == kind and all(record.get(key) == value for key, value in wanted.items())
    ]


def values_of(text, kind):
    return [record.values for record in of_kind([parse(text.encode() + b"\n")], kind)]


class Spread:
    """Median, extremes and deviation (of a sample, as in the published tables) of some measurements."""

    def __init__(self, values):
        self.values, self.runs, self.low, self.high = values, len(values), min(values), max(values)
        self.median = statistics.median(values)
        self.sd = statistics.stdev(values) if len(values) > 1 else 0.0
