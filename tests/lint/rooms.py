#!/usr/bin/env python3
"""Checks the order of rooms and names each use that breaks it. `make lint` runs this program, and so does `make test`.

A room is a folder. A file may use its own room and the rooms before it in ORDER. An #include and a symbol of another object are both
arrows. Where a lower room needs an upper one, it calls through a table (kernel/core/upward.h, mm/memmap/upward.h); only the file that fills
in the table depends on the upper room. A function that a header declares is defined in the file of the same name, or is listed in
rooms.txt with the reason.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/qemu"))

import texts  # noqa: E402


def rooms_of(folder):
    """The rooms of a folder from the bottom to the top, as the table of its page has them, and the folder itself above them."""
    text = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    return [f"{folder}/{name}" for name in re.findall(r"^\| \[`(\w+)`\]\(\1\) \|", text, re.M)] + [folder]


# From the bottom to the top. The rooms of arch/x86_64 stand beside the others: all rooms see hardware through <arch/...>, the rooms there
# use mm and kernel, and start-up ties them together.
ORDER = [
    *("kernel/lib", "kernel/core", "kernel/console"), *rooms_of("mm"),
    *("kernel/virtio", "kernel/run", "kernel", "kernel/program/vdso", "kernel/program"),
]  # fmt: skip
ARCH = rooms_of("arch/x86_64")
# Tables of calls that go up.
TABLES = {"kernel_upward", "mm_upward"}


LISTED = texts.rows(ROOT / "tests/lint/rooms.txt", r"(facade|elsewhere) +(\S+)  +\S.*")  # with the reasons
FACADES, ELSEWHERE = ([header for kind, header in LISTED if kind == word] for word in ("facade", "elsewhere"))


def tracked():
    for folder in ("kernel", "mm", "arch/x86_64"):
        for path in sorted((ROOT / folder).rglob("*.[ch]")):
            yield path.relative_to(ROOT).as_posix()


def room(name):
    return name.rpartition("/")[0]


def module(name):
    return name.rpartition(".")[0]


def objects(build):
    """For each object of the kernel: its source, and the symbols that it defines and uses."""
    paths = [path for folder in ("kernel", "mm", "arch/x86_64") for path in sorted((build / "kernel" / folder).rglob("*.o"))]
    sources = {str(path): path.relative_to(build / "kernel").as_posix().removesuffix(".o") for path in paths}
    there = [path for path, source in sources.items() if (ROOT / source).exists()]
    lines = subprocess.run(["nm", "-A", *there], capture_output=True, text=True, check=True).stdout.splitlines() if there else []
    words = {path: [] for path in there}
    for line in lines:
        path, _, symbol = line.rpartition(":")
        words[path].append(symbol.split())
    for path, of in words.items():
        yield sources[path], {w[-1] for w in of if w[-2] in "TDBRVWSC"}, {w[-1] for w in of if w[-2] == "U"}


def arrows(found):
    """(from, to, why): every file that uses another one."""
    owner = {symbol: source for source, defined, _ in found for symbol in defined}
    for source, _, used in found:
        for symbol in used - TABLES:
            if symbol in owner:
                yield source, owner[symbol], symbol
    for name in tracked():
        for header in re.findall(r'^#include "((?:mm|kernel|arch)/[^"]+)"', (ROOT / name).read_text(encoding="utf-8"), re.M):
            if header not in FACADES:
                yield name, header, "#include"


def upward(every):
    """Arrows against one of the two orders. Arrows between the two are the matter of past_the_interface()."""
    wrong = set()
    for order in (ORDER, ARCH):
        place = {name: i for i, name in enumerate(order)}
        wrong |= {arrow for arrow in every if place.get(room(arrow[1]), 0) > place.get(room(arrow[0]), len(order))}
    return sorted(wrong)


def past_the_interface(every):
    """The rooms see hardware through <arch/...> alone, so they can also run hosted."""
    return sorted(arrow for arrow in every if arrow[2] == "#include" and room(arrow[0]) in ORDER and arrow[1].startswith("arch/"))


def declared(header):
    """Names of the functions that a header declares, without those that it defines inline."""
    text = re.sub(r"/\*[\s\S]*?\*/|^#define(?:.*\\\n)*.*$", "", (ROOT / header).read_text(encoding="utf-8"), flags=re.M)
    while re.search(r"\{[^{}]*\}", text):
        text = re.sub(r"\{[^{}]*\}", ";", text)
    return re.findall(r"^(?!static|typedef|#|\s)[^;()#]*?\b(\w+)\s*\([^;]*?\)[^;()]*(?:\([^;]*\))?;", text, re.M)


def elsewhere(found):
    """(header, function, file) for each prototype whose function is defined in a file of another name."""
    owner = {symbol: source for source, defined, _ in found for symbol in defined}
    wrong = []
    for header in tracked():
        if not header.endswith(".h") or header in FACADES or "/include/" in header:
            continue
        wrong += [(header, name, owner[name]) for name in declared(header) if name in owner and module(owner[name]) != module(header)]
    return wrong


def complaints(found, every):
    """A line for each thing that breaks the order."""
    bad = [f"{source}: {why}: goes up to {target}" for source, target, why in upward(every)]
    bad += [f"{source}: includes {target} instead of a header of <arch/...>" for source, target, _ in past_the_interface(every)]
    wrong = elsewhere(found)
    bad += [f"{header}: {name}() is defined in {source}" for header, name, source in wrong if header not in ELSEWHERE]
    idle = sorted(set(ELSEWHERE) - {header for header, _, _ in wrong})
    bad += [f"{header}: is listed and declares nothing that is defined elsewhere" for header in idle]
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", type=Path)
    build = (ROOT / parser.parse_args().build).resolve()
    found = list(objects(build))
    if len(found) < 100:
        print("rooms: the kernel is not built: make")
        return 2
    bad = complaints(found, list(arrows(found)))
    print(*bad, f"rooms: {len(ORDER) + len(ARCH)}, {len(bad)} wrong", sep="\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
