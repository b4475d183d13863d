#!/usr/bin/env python3
"""`make test WHAT=mutants-random`: breaks lines that a seed draws, in ways that a tool of others chooses, and counts how many the tests notice.

Each mutant that candidates.py draws goes through these stages, in a copy of the tree, until something notices it (README.md):

    sift     the kernel's objects are compiled; a mutant that the build refuses, or that changes no object, is not counted
    reach    hosted, under the address sanitizer: the cases that reach the line (reach.py), then those that reach its function; all,
             if none does or it is in no function
    machines after the first of those cases, the hosted kernel boots as the machines of tests/replay, if the file may know the machine;
             for what is in BY_TEST, its tests of tests/qemu
    explore  the schedules of those cases of which the explorer searches many
    guest    the suites of those cases in one guest that counts instructions; for what is not hosted those of its top folder, then all

A mutant that was noticed stays noticed while its file is unchanged and the case is there. One that survived is tried again when any source
or case changes.
"""

import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from statistics import median

import candidates
from keys import digest, digest_of
from mutants import CAUGHT, ROOT, Progress, Tree, explored, how_it_failed, pytest_outcome
from reach import MACHINE, Reach

sys.path[:0] = [str(ROOT / "tests/qemu"), str(ROOT / "tests/programs")]

from fetch import Fetcher, Missing  # noqa: E402
from guest import Guest  # noqa: E402
from hosted import run_hosted  # noqa: E402
from ktap import Ktap  # noqa: E402
from machine import CMDLINE_MOST, Machine  # noqa: E402

HERE = Path(__file__).resolve().parent
STAGE_SECONDS = 1800
BATCH_SECONDS = 3  # of processor time without the sanitizer, for the cases that are tried first; three times as many for each later batch
KNOW_THE_MACHINE = ("arch/", "boot/", "mm/map/", "mm/init.c")
METAL = "test_metal.py::test_"
BY_TEST = {  # tests of machines that know a file which the cases of a guest do not
    **dict.fromkeys(("boot/entry.S", "boot/start.c"), ("test_boot.py::test_a_cpu_that_cannot", "test_boot.py::test_nx_that_firmware_hides_is_shown_again",
                                                       "test_boot.py::test_grub_boots_from_a_usb_stick_and_hands_over_every_character")),
    "arch/x86_64/acpi/acpi_find.c": (f"{METAL}another_machines_tables", f"{METAL}damaged_tables"),
    "arch/x86_64/consoles/console.c": tuple(f"{METAL}{rest}" for rest in (
        "every_port_that_answers_has_the_log", "a_console_that_is_wished_twice_is_there_once", "a_console_that_is_not_there_is_named",
        "another_machines_tables", "damaged_tables")),
    "arch/x86_64/cpu/cpu.c": ("test_clear.py::test_choice",),
    "arch/x86_64/cpu/leftovers.c": (f"{METAL}a_chipset_without_that_watchdog_is_left_alone", f"{METAL}devices_that_firmware_left_at_work_are_stopped"),
    "kernel/core/percpu.c": ("test_host.py::test_each_of_65_cpus_has_a_bit",),
    "kernel/core/fail.c": ("test_boot.py::test_a_cpu_that_does_not_come_up_is_named_and_left_out",),
    **dict.fromkeys(("arch/x86_64/consoles/console_screen.c", "arch/x86_64/consoles/keyboard.c"), (
        f"{METAL}vga_text_shows_the_last_lines_and_is_paged_with_the_keyboard",)),
    "arch/x86_64/interrupts/nmi.c": (f"{METAL}nothing_is_said_on_a_machine_that_hides_its_emulator", f"{METAL}a_panic_stops_the_cpus_that_are_at_work"),
    "arch/x86_64/interrupts/nmi_tick.c": tuple(f"{METAL}{rest}" for rest in (
        "a_hang_is_ended_by_the_rtc", "without_an_rtc_the_last_cpu_watches", "the_line_of_an_rtc_that_does_not_tick_is_masked")),
    "arch/x86_64/smp/smp_page.c": ("test_boot.py::test_cpus_start_from_the_highest_low_page_that_is_free",),
    "arch/x86_64/traps/traps.c": ("test_boot.py::test_a_crash_names_the_reason_and_the_callers",),
    "arch/x86_64/program_image.c": ("test_payload_api.py::test_cxx",),
    "arch/x86_64/time/clock.c": (f"{METAL}what_measures_the_tsc",),
    **dict.fromkeys(("mm/hugetlb/pool_use.c", "mm/page/page_fast.h", "mm/page/pcp_drain.c"), (
        "test_counts.py::test_no_operation_of_the_kernel_costs_more",)),
    "boot/refuse.S": ("test_metal.py::test_a_cpu_that_cannot_is_told_on_the_screen", "test_boot.py::test_a_cpu_that_cannot"),
    "arch/x86_64/exit.c": ("test_metal.py::test_a_machine_is_reset_by_the_register_of_its_tables",
                           "test_metal.py::test_a_machine_is_reset_by_a_register_in_memory",
                           *(f"test_metal.py::test_power_{rest}" for rest in ("is_switched_off_as_the_tables_say",
                             "is_switched_off_by_a_register_at_a_port", "that_stays_on_is_said"))),
    "kernel/program/program.c": tuple(f"test_program.py::test_{rest}" for rest in (
        "the_machine_ends_with_the_status_of_its_program", "memory_calls_answer_as_their_manual_pages_say")),
    "kernel/program/files_out.c": tuple(f"test_program.py::test_{rest}" for rest in (
        "what_a_program_prints_and_leaves_behind_arrives", "a_program_that_is_not_started_leaves_nothing_behind")),
    **dict.fromkeys(("kernel/program/module.c", "kernel/program/timers.c"), tuple(f"test_program.py::test_{rest}" for rest in (
        "the_monitor_runs_programs_again_and_again", "a_program_that_is_not_started_leaves_nothing_behind"))),
    **dict.fromkeys(("kernel/program/map_texts.c", "kernel/program/vdso/vdso.c"), (
        "test_program.py::test_small_programs_end_as_on_linux[threads.c-glibc]",)),
    "kernel/run/monitor.c": ("test_monitor.py::test_editing_history_and_completion",),
    "kernel/virtio/balloon.c": ("test_balloon.py::test_what_a_pool_touched_goes_back[pvh]",),
    **dict.fromkeys((f"boot/efi/{file}" for file in ("efi.h", "handover.c", "handover.h", "leave.S", "main.c")),
                    ("test_efi.py", "test_efi.py::test_after_a_reset_the_log_is_on_the_stick")),
}  # fmt: skip
TESTS = {"test_replay.py", *(test for tests in BY_TEST.values() for test in tests)}
SCHEDULES, EXPLORED_MOST = 200, 12  # of a case; cases of a mutant
SHORT = 10  # seconds for 1000 schedules, in tests/report/measurements/schedules.txt
GUEST, GUEST_SECONDS = Machine("pvh", 4, "512M", accel="icount-5"), 60
HANGS = {"arch.*": 20, "boot.*": 20}  # seconds of the guest; else 70: the longest case takes 55
BY = ("a case", "a crash", "a time-out")


# ---- what is run -------------------------------------------------------------------------------------------------


def kind_of(text):
    """By what a run shows that something is wrong, from what it said."""
    return CAUGHT[how_it_failed(text)] or "a case"


class FirstFailure:
    """Reads the lines of a run up to the first case that fails."""

    def __init__(self):
        self.ktap, self.case, self.kind = Ktap(), None, ""

    def feed(self, line):
        case = self.ktap.feed(line)
        if case and case.outcome == "failed" and not self.case:
            self.case, self.kind = case.name, kind_of(case.detail)
        return self.case


HOSTED, UNBROKEN = "build/host/asan/ashlar-host", "build/unbroken-host"


def hosted_failure(tree, cases, seconds, program=HOSTED):
    """(case, kind) of the first case that fails hosted, or of the suite in which the runner dies, or None. The run ends there."""
    argv = [str(tree.folder / program), *MACHINE, "-t", str(seconds), ",".join(cases)]
    first = FirstFailure()
    status = run_hosted(argv, first.feed, STAGE_SECONDS, tree.folder)
    if first.case or not status:
        return (first.case, first.kind) if first.case else None
    return f"{first.ktap.suite or 'runner'}.*", "a crash"


def guest_failure(kernel, cases):
    """Likewise in a guest."""
    first = FirstFailure()
    machine = replace(GUEST, cmdline=f"end.hang={HANGS.get(cases[0], 70)} test={','.join(cases)}")
    with Guest(machine, kernel, lambda line: first.feed(line) and guest.child.kill(signal.SIGKILL)) as guest:
        outcome = guest.finish(GUEST_SECONDS)
    if first.case:
        return first.case, first.kind
    if outcome.verdict == "pass" and not outcome.problem and first.ktap.cases:  # else it has lost its command line
        return None
    return f"the guest, in {first.ktap.suite or 'no suite'}", kind_of(f"the guest: {outcome.problem} verdict {outcome.verdict}")


def suites_of(cases):
    """The globs of their suites, as many as a command line holds, or all cases."""
    globs = sorted({case.rpartition(".")[0] + ".*" for case in cases})
    return globs if globs and len(",".join(globs)) < CMDLINE_MOST - 100 else ["*"]


def limit_of(seconds):
    """Of processor time under the sanitizer, for what took so long without it. A machine whose CPUs all sleep gets five times as long."""
    return round(5 + 10 * seconds)


def is_near(case, path):
    """Whether a case is of a suite that has the name of a file or of the beginning of it, or the other way round."""
    name, stem = case.split(".")[-2], Path(path).stem
    return stem.startswith(name) or name.startswith(stem)


def short_searches():
    """The cases of which the explorer searches many schedules soon, the quickest first."""
    text = (ROOT / "tests/report/measurements/schedules.txt").read_text(encoding="utf-8")
    found = {case: float(seconds) for case, seconds in re.findall(r"(?m)^(\S+\.\S+) +all +\d+ +\d+ +\d+ +([\d.]+) ", text)}
    return [case for case in sorted(found, key=found.get) if found[case] <= SHORT]


# ---- one mutant --------------------------------------------------------------------------------------------------


class Worker:
    def __init__(self, tree):
        self.tree, self.plain, self.reach = tree, {}, None  # plain: the kernel's objects of the unbroken tree, by file
        self.passed = []  # the suites that the unbroken kernel is known to pass in a guest
        self.fit = {}  # tests and searches that have noticed something: does the unbroken tree pass?

    def unbroken(self, kept, key):
        """Build the tree as it is, and know which case reaches what."""
        for target in ("host-asan", "host-explore", "kernel"):
            wrong = self.tree.make(target)
            if wrong:
                raise SystemExit(f"the unbroken tree does not build: {wrong}")
        for empty in ("kernel.elf", "ashlar.txt"):  # what boot/efi/leave.S includes; its tests include the real ones
            (self.tree.folder / "build" / empty).touch()
        for built, kept_as in (("build/ashlar.elf", "build/unbroken.elf"), (HOSTED, UNBROKEN)):
            shutil.copy(self.tree.folder / built, self.tree.folder / kept_as)
        self.reach = Reach(self.tree, kept, key)

    def objects(self, candidate, part=""):
        """The built objects that a mutant changes: of its file, or of what includes it (boot/efi/handover.c). For a header those whose
        debugging information names its function."""
        every = sorted((self.tree.folder / "build" / part).rglob("*.o"))
        if candidate.path.endswith(".h"):
            name = candidate.function.encode() + b"\0"
            return [path for path in every if name in path.read_bytes()]
        own = [path for path in every if str(path).endswith((f"/{candidate.path}.o", "/" + re.sub(r"[cS]$", "o", candidate.path)))]
        return own or [path for path in every if (notes := path.with_suffix(".d")).is_file() and candidate.path in notes.read_text().split()]

    @contextmanager
    def broken(self, candidate, objects=()):
        """The tree with the mutant in it. The objects are made again, and afterwards they are what they were, newer than what is linked."""
        path, kept = self.tree.folder / candidate.path, {file: file.read_bytes() for file in objects}
        times = path.stat().st_atime_ns, path.stat().st_mtime_ns
        path.write_text(candidate.source.broken(candidate), encoding="utf-8")
        if "/vdso/" not in candidate.path:  # which no object of the kernel is made of
            os.utime(path, ns=times)
        for file in kept:
            file.unlink()
        try:
            yield
        finally:
            path.write_text(candidate.source.text, encoding="utf-8")
            if "/vdso/" not in candidate.path:
                os.utime(path, ns=times)
            for file, data in kept.items():
                file.write_bytes(data)

    def compiled(self, path, flags="KERNEL_CFLAGS"):
        """The object of a file without debugging information, or None if the build refuses the file."""
        out = self.tree.folder / "build/sift.o"
        argv = [*shlex.split(os.environ["CC"]), *shlex.split(os.environ[flags]), "-g0", "-Ibuild", "-c", path, "-o", str(out)]
        done = subprocess.run(argv, cwd=self.tree.folder, capture_output=True, check=False)
        return out.read_bytes() if done.returncode == 0 else None

    def sift(self, candidate):
        files = [candidate.path]
        if candidate.path.endswith(".h"):
            folder = self.tree.folder / "build/kernel"
            files = [str(path.relative_to(folder))[:-2] for path in self.objects(candidate, "kernel")]
        for path in files:
            if path not in self.plain:
                self.plain[path] = self.compiled(path)
            if self.plain[path] is None:
                raise SystemExit(f"{path} does not compile unbroken")
            with self.broken(candidate):
                other = self.compiled(path)
                hosted = other and path.endswith(".c") and (self.tree.folder / "build/host/asan" / path).with_suffix(".o").is_file()
                if other is None or other != self.plain[path] and hosted and not self.compiled(path, "HOST_CFLAGS"):
                    return "refused"
            if other != self.plain[path]:
                return "counted"
        return "same"

    def judge(self, candidate):
        objects = self.objects(candidate)
        hosted = any("/host/asan/" in str(path) for path in objects)
        while True:
            with self.broken(candidate, objects):
                found = self._stages(candidate, hosted)
            if found.get("stage") not in ("machines", "explore") or self._is_fit(found["stage"], found["case"]):
                return found

    def _is_fit(self, stage, case):
        """Whether the unbroken tree passes. If it does not, what the test says of others does not count either."""
        if case not in self.fit:
            wrong = any([self.tree.make(target) for target in ("host-asan", "host-explore", "kernel")])
            said = explored(self.tree, case, SCHEDULES) if stage == "explore" else pytest_outcome(self.tree, case)
            self.fit[case] = said == "passed" and not wrong
        return self.fit[case]

    def reached(self, candidate):
        """(cases that reach the line, all that are tried). A table is read by code of other files: all are."""
        nearest, every = self.reach.of(candidate.path, candidate.line, candidate.source.span(candidate.line))
        return nearest, every if candidate.function else self.reach.cases

    def _stages(self, candidate, hosted):
        nearest, every = self.reached(candidate)
        noticed = None
        if hosted:
            if self.tree.make("host-asan"):
                return {"outcome": "refused"}
            noticed = self._hosted(candidate.path, nearest, every or self.reach.cases) or self._explored(candidate.path, every)
        if not noticed:
            if self.tree.make("kernel"):
                return {"outcome": "refused"}
            rooms = [suites_of(every)] if every else [[candidate.path.split("/")[0] + ".*"], ["*"]]
            noticed = self._by_test(candidate.path) or next(filter(None, map(self._guest, rooms)), None)
        return dict(zip(("outcome", "stage", "case", "by"), ("noticed", *noticed))) if noticed else {"outcome": "survived"}

    def _hosted(self, path, nearest, cases):
        """(stage, case, kind) of what notices hosted, or None."""
        seconds, room = self.reach.seconds, BATCH_SECONDS
        left = sorted(cases, key=lambda case: (case not in nearest, not is_near(case, path), seconds[case]))
        while left:
            batch = [left.pop(0)]
            while left and sum(map(seconds.get, batch)) + seconds[left[0]] < room:
                batch.append(left.pop(0))
            found = hosted_failure(self.tree, batch, limit_of(max(map(seconds.get, batch))))
            again = found and hosted_failure(self.tree, [found[0]], limit_of(seconds.get(found[0], 9)))
            if again and not hosted_failure(self.tree, [found[0]], limit_of(seconds.get(found[0], 9)), UNBROKEN):
                return ("reach", *again)
            if found and found[0] in batch:  # by luck, or the unbroken kernel fails, too, and nothing after it has run
                left[:0] = batch[batch.index(found[0]) + 1 :]
            if room == BATCH_SECONDS and path.startswith(KNOW_THE_MACHINE) and (failed := self._by_one("test_replay.py")):
                return failed
            room *= 3
        return None

    def _guest(self, suites):
        """Likewise in a guest. Suites that the unbroken kernel fails there, too, as those that are hosted only, say nothing."""
        found = guest_failure(self.tree.folder / "build/ashlar.elf", suites)
        if found and suites not in self.passed:
            if guest_failure(self.tree.folder / "build/unbroken.elf", suites):
                return None
            self.passed.append(suites)
        return found and ("guest", *found)

    def _by_test(self, path):
        return next(filter(None, map(self._by_one, BY_TEST.get(path, ()))), None)

    def _by_one(self, test):
        """Likewise by a test of tests/qemu that fails twice or does not end."""
        found = "passed"
        for _ in range(2 if self.fit.get(test, True) else 0):
            found = pytest_outcome(self.tree, test)
            if found == "passed":
                break
        return None if found == "passed" else ("machines", test, "a case" if found == "failed" else "a time-out")

    def _explored(self, path, cases):
        few = sorted((case for case in short_searches() if case in cases and self.fit.get(case, True)), key=lambda case: not is_near(case, path))[:EXPLORED_MOST]
        if few and self.tree.make("host-explore"):
            return None
        failed = next((case for case in few if explored(self.tree, case, SCHEDULES) == "failed"), None)
        return failed and ("explore", failed, "a case")


# ---- the run -----------------------------------------------------------------------------------------------------


def key_of(*folders):
    """A hash of all code in them, which is built or judges what is built."""
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*"))
    return digest_of(ROOT, [path.relative_to(ROOT) for path in paths if path.suffix in (".c", ".h", ".S", ".lds", ".py")])


class Results:
    """What is known of each mutant, a row each, in files to which shards append. The last row of a mutant counts. Those that were judged
    are committed; what the sift found is kept in the build."""

    FIELDS = ("key", "sources", "outcome", "stage", "case", "by", "seconds", "place", "before", "after")

    def __init__(self, judged, sifted, product, everything):
        self.judged, self.sifted, self.product, self.everything, self.known = judged, sifted, product[:12], everything[:12], {}
        self.cases = ()  # those that there are
        for file in [*sorted(sifted.parent.glob("sifted-*.txt")), *sorted(judged.parent.glob("*.txt"))]:
            for line in file.read_text(encoding="utf-8").splitlines():
                row = dict(zip(self.FIELDS, line.split("\t")))
                self.known[row["key"]] = row

    @staticmethod
    def _key(candidate):
        return digest(*candidate.key[:2], candidate.before.strip(), candidate.after.strip(), candidate.line, candidate.source.text)[:16]

    def get(self, candidate):
        """The result, or none. A mutant that survived elsewhere is tried again, as is one whose case is gone. What the build said of it
        elsewhere does not count: it depends on headers."""
        found = dict(self.known.get(self._key(candidate), {"outcome": ""}))
        word, known = found["outcome"], found.get("sources")
        if word in ("refused", "same") and known != self.product:
            return {"outcome": ""}
        there = {"reach": self.cases, "machines": TESTS}.get(found.get("stage"))
        gone = word == "noticed" and there and "*" not in found["case"] and found["case"] not in there
        return dict(found, outcome="counted") if gone or word == "survived" and known != self.everything else found

    def put(self, candidate, outcome, **news):
        row = dict(dict.fromkeys(self.FIELDS, "-"), key=self._key(candidate), sources=self.product, outcome=outcome, **news)
        file = self.sifted
        if outcome in ("noticed", "survived"):
            row["sources"] = self.everything
            file, row["place"] = self.judged, f"{candidate.path}:{candidate.line} {candidate.function}".strip()
            row["before"], row["after"] = candidate.before.strip(), candidate.after.strip()
        self.known[row["key"]] = row
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as out:
            out.write("\t".join(str(row[field]).replace("\t", " ") for field in self.FIELDS) + "\n")
        return row


class Run:
    def __init__(self, args):
        self.args = args
        folder, shard = Path(args.build).resolve(), f"{args.seed}.{args.shard.replace('/', '-of-')}"
        self.results = Results(Path(args.rows) / f"{shard}.txt", folder / f"sifted-{shard}.txt", key_of(*candidates.FOLDERS),
                               key_of(*candidates.FOLDERS, "tests"))  # fmt: skip
        self.marks = candidates.read_marks(HERE / "equivalent.txt")
        self.worker = Worker(Tree(folder / f"tree-{args.shard.replace('/', '-of-')}"))

    def counted(self):
        """The mutants that count, and how many the sift left out for which reason."""
        found, words = [], Counter()
        for candidate in candidates.drawn(ROOT, self.args.seed):
            if len(found) == self.args.number:
                break
            word = self.results.get(candidate)["outcome"] or self.results.put(candidate, self.worker.sift(candidate))["outcome"]
            if word in ("refused", "same"):
                words[word] += 1
            else:
                found.append(candidate)
        return found, words

    def run(self):
        shard, shards = map(int, self.args.shard.split("/"))
        self.worker.unbroken(Path(self.args.build) / "reach.json", [key_of(*candidates.FOLDERS, "tests/kernel", "tests/host"), MACHINE])
        self.results.cases = set(self.worker.reach.cases)
        found, words = self.counted()
        print(f"seed {self.args.seed}: {len(found) + sum(words.values())} mutants drawn; the build refuses {words['refused']}, "
              f"{words['same']} compile to the same object, {len(found)} count", flush=True)
        to_try = [one for one in found[shard - 1 :: shards] if self.results.get(one)["outcome"] == "counted" and one.key not in self.marks]
        to_try.sort(key=lambda candidate: not self.worker.reached(candidate)[1])  # a guest takes minutes
        progress = Progress("mutant", list(map(place_of, to_try)), Path(self.args.build) / f"seconds.{shard}.json")
        with suppress(KeyboardInterrupt):  # the score says how many are left
            for candidate in to_try:
                progress.begin(place_of(candidate))
                began = time.monotonic()
                news = self.worker.judge(candidate)
                known = self.results.put(candidate, seconds=round(time.monotonic() - began), **news)
                progress.end(place_of(candidate))
                progress.say(line_of(candidate, known) + "\n")
        rows = [(candidate, self.results.get(candidate)) for candidate in found]
        return report(self.args, rows, words, self.marks)


# ---- the score ---------------------------------------------------------------------------------------------------


def place_of(candidate):
    return f"{candidate.path}:{candidate.line}"


def line_of(candidate, known):
    by = f" by {known['by']}, {known['case']} ({known['stage']})" if known["outcome"] == "noticed" else ""
    where = f"{place_of(candidate)} {candidate.function}"
    text = f"\n    - {candidate.before.strip()}\n    + {candidate.after.strip()}" if known["outcome"] == "survived" else ""
    return f"{known['outcome']} {where}{by}, {known['seconds']} s{text}"


def rate(noticed, judged):
    """The share that was noticed, and the 95% interval (Wilson, 1927) in which that of all mutants lies."""
    if not judged:
        return "-"
    share, z2 = noticed / judged, 1.96**2 / judged
    middle, half = share + z2 / 2, (z2 * share * (1 - share) + z2 * z2 / 4) ** 0.5
    low, high = (100 * max(0, end) / (1 + z2) for end in (middle - half, middle + half))
    return f"{100 * share:.1f}% ({low:.1f} to {high:.1f})"


def table(rooms):
    columns = (*BY, "survived", "equivalent", "counted")
    lines = ["| room | by " + " | ".join(columns) + " | noticed (95% range) |", "|---" * (len(columns) + 2) + "|"]
    for room in [*sorted(rooms), "all"]:
        found = rooms.get(room) or sum(rooms.values(), Counter())
        noticed = sum(found[word] for word in BY)
        cells = [str(found[word]) for word in columns] + [rate(noticed, noticed + found["survived"])]
        lines.append(f"| {room} | " + " | ".join(cells) + " |")
    return [line.replace("| counted |", "| not tried |") for line in lines]


def section(args, rows, words, marks):
    """(lines of the score about one seed, how many survived or were not tried)."""
    rooms, survived = {}, []
    for candidate, known in rows:
        word = "equivalent" if candidate.key in marks else known["by"] if known["outcome"] == "noticed" else known["outcome"]
        rooms.setdefault(str(Path(candidate.path).parent), Counter())[word] += 1
        survived += [candidate] if word == "survived" else []
    total = sum(rooms.values(), Counter())
    seconds = [int(known["seconds"]) for _, known in rows if known["outcome"] in ("noticed", "survived")]
    noticed = sum(total[word] for word in BY)
    judged = noticed + len(survived)
    tree = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    lines = [
        f"## Seed {args.seed}", "",
        f"{time.strftime('%Y-%m-%d', time.gmtime())}, tree {tree}, `make test WHAT=mutants-random N={args.number} SEED={args.seed}`: "
        f"{len(rows)} mutants count. The build",
        f"refused {words['refused']} others, and {words['same']} compiled to the same object.", "",
        f"Noticed: **{noticed} of {judged}**, {rate(noticed, judged)}. Equivalent: {total['equivalent']}. Not tried: {total['counted']}. "
        f"A mutant that was judged took {sum(seconds) / max(len(seconds), 1):.0f} s, its build included; half took {median(seconds or [0]):.0f} s "
        "or less.",
        "", *table(rooms),
    ]  # fmt: skip
    if survived:
        shown = [text for one in survived for text in (f"{one.path} {one.function}", f"- {one.before.strip()}", f"+ {one.after.strip()}")]
        lines += ["", "Survivors:", "", "```", *shown, "```"]
    return lines, len(survived) + total["counted"]


def report(args, rows, words, marks):
    lines, left = section(args, rows, words, marks)
    print("\n".join(lines))
    if args.score:
        path = Path(args.score)
        parts = re.split(r"(?m)^(?=## Seed )", path.read_text(encoding="utf-8"))
        kept = [part.rstrip() for part in parts[1:] if part.splitlines()[0] != lines[0]]
        path.write_text("\n\n".join([parts[0].rstrip(), *kept, "\n".join(lines)]) + "\n", encoding="utf-8")
    return 1 if left else 0


def main():
    parser = argparse.ArgumentParser(description="Break lines drawn at random and count how many the tests notice.")
    parser.add_argument("--build", default="build/mutants-random")
    parser.add_argument("--tools", default="build/tools", help="the tool that makes the mutants is kept in its folder programs/")
    parser.add_argument("--number", type=int, default=400)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--shard", default="1/1", help="i/n: try only every n-th mutant, from the i-th")
    parser.add_argument("--rows", required=True, help="folder with a row for each mutant that was judged")
    parser.add_argument("--score", default="", help="the file whose section about the seed is written")
    args = parser.parse_args()
    try:
        candidates.fetch_tool(Fetcher(Path(args.tools) / "programs"))
    except Missing as why:
        raise SystemExit(f"no mutants: {why}") from why
    return Run(args).run()


if __name__ == "__main__":
    sys.exit(main())
