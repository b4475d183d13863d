"""Which hosted cases reach a line of code, found by one run of each case in the build `reach` (tests/host/reach.c).

A line is reached if the basic block before it is. Code that was inlined counts for its own file, so headers are known, too.
"""

import json
import operator
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

PROGRAM = "build/host/reach/ashlar-host"
MACHINE = ("-c", "4", "-m", "6G", "-n", "3")  # memory that is not touched costs nothing


def run_case(folder, number, case):
    """(seconds of processor time, the addresses of the blocks that it enters)"""
    file = folder / f"build/reach.{number}"
    argv = [folder / PROGRAM, *MACHINE, "-t", "300", case]
    child = subprocess.Popen(argv, env={**os.environ, "ASHLAR_REACH": str(file)}, cwd=folder, stdout=subprocess.DEVNULL)
    used = os.wait4(child.pid, 0)[2]
    found = [hit.start() for hit in re.finditer(b"\1", file.read_bytes())]
    file.unlink()
    return round(used.ru_utime + used.ru_stime, 2), found


def lines_of(folder, addresses):
    """{address: {(path, line)}} of the block that begins at each address, and of the calls that were inlined around it."""
    asked = "".join(f"{address - 1:#x}\n" for address in addresses)
    argv = ["addr2line", "-e", str(folder / PROGRAM), "-a", "-i"]
    found, places = {}, set()
    for line in subprocess.run(argv, input=asked, capture_output=True, text=True, check=True).stdout.splitlines():
        place = re.match(r"\./(\S+):(\d+)", line)
        if line.startswith("0x"):
            places = found.setdefault(int(line, 16) + 1, set())
        elif place:
            places.add((place[1], int(place[2])))
    return found


def measure(tree):
    """What is kept: the cases, their seconds, and for each line of each file a mask of the cases that reach it, in hexadecimal."""
    wrong = tree.make(PROGRAM)
    if wrong:
        raise SystemExit(f"the build that notes what is reached does not build: {wrong}")
    listed = subprocess.run([tree.folder / PROGRAM, "-l"], capture_output=True, text=True, check=True, cwd=tree.folder).stdout
    cases, masks = listed.split(), {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = list(pool.map(lambda case: run_case(tree.folder, *case), enumerate(cases)))
    for number, (_, found) in enumerate(runs):
        for address in found:
            masks[address] = masks.get(address, 0) | 1 << number
    lines = {}
    for address, places in lines_of(tree.folder, masks).items():
        for path, line in places:
            row = lines.setdefault(path, {})
            row[line] = row.get(line, 0) | masks[address]
    return {"cases": cases, "seconds": [seconds for seconds, _ in runs],
            "lines": {path: {line: f"{mask:x}" for line, mask in row.items()} for path, row in lines.items()}}


class Reach:
    def __init__(self, tree, kept, key):
        known = json.loads(kept.read_text()) if kept.is_file() else {}
        if known.get("key") != repr(key):
            known = {"key": repr(key), **measure(tree)}
            kept.write_text(json.dumps(known))
        self.cases, self.seconds, self.lines = known["cases"], dict(zip(known["cases"], known["seconds"])), known["lines"]

    def _named(self, mask):
        return [case for number, case in enumerate(self.cases) if mask >> number & 1]

    def of(self, path, line, span):
        """(cases that reach the block of the line, all that reach the lines `span` around it); both empty if none does."""
        rows = {int(at): int(mask, 16) for at, mask in self.lines.get(path, {}).items() if int(at) in span}
        if not rows:
            return [], []
        every = reduce(operator.or_, rows.values())
        return self._named(rows[max((at for at in rows if at <= line), default=min(rows))]), self._named(every)
