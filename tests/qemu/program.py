#!/usr/bin/env python3
"""What `make run PROGRAM=` passes to the kernel: one module with the program and its files, and words of the command line.

    program.py --program "HOME=/ ./a.out -v 'a b'" --files dir --out build/program.cpio

It writes the module and prints the words: program=a.out program.args="-v 'a b'" program.env="HOME=/". The kernel splits these texts as a
shell does (kernel/program/arguments.h). The module is a cpio image of format "newc" (kernel/program/cpio.h). The same input makes the same
image: files are sorted, and owners, times and inodes are left out.
"""

import argparse
import itertools
import os
import re
import shlex
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

LARGEST = 0xFFFFFFFF  # 8 hexadecimal digits


def padded(data):
    return data + bytes(-len(data) % 4)


def cpio_entry(name, mode, data=b""):
    """One entry. `name` is bytes or text without a leading slash."""
    name = os.fsencode(name) + b"\0"
    if len(data) > LARGEST:
        raise ValueError(f"{os.fsdecode(name[:-1])}: {len(data)} bytes do not fit into a cpio image")
    links = 2 if stat.S_ISDIR(mode) else 1
    numbers = (0, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(name), 0)
    header = b"070701" + b"".join(b"%08x" % number for number in numbers)
    return padded(header + name) + padded(data)


def cpio_trailer():
    return cpio_entry("TRAILER!!!", 0)


def cpio_entry_of(path, name):
    """The entry of a file, a folder or a symbolic link; None for what is none of these (sockets, devices)."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return cpio_entry(name, mode, os.fsencode(os.readlink(path)))
    if stat.S_ISDIR(mode):
        return cpio_entry(name, mode)
    return cpio_entry(name, mode, path.read_bytes()) if stat.S_ISREG(mode) else None


def tree(folder):
    """(path, name) of all that lies below a folder, folders before what they contain."""
    for here, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(folders + files):
            path = Path(here) / name
            yield path, path.relative_to(folder).as_posix()


def cpio_image(program, folder=None):
    """The program first, under its file name, then all that lies below the folder. A file of the same name as the program must be the
    program itself."""
    program = Path(program)
    data = program.read_bytes()
    parts = [cpio_entry(program.name, stat.S_IFREG | 0o755, data)]
    for path, name in tree(folder) if folder else ():
        if name == program.name:
            if not path.is_file() or path.read_bytes() != data:
                raise ValueError(f"{path} and the program have the same name and are different files")
            continue
        parts.append(cpio_entry_of(path, name))
    return b"".join(part for part in parts if part) + cpio_trailer()


class Unusable(Exception):
    """The program cannot be passed to the kernel; the text says why."""


@dataclass(frozen=True)
class Program:
    path: str
    args: str = ""
    files: str = ""
    env: str = ""

    @property
    def words(self):
        texts = (("program", Path(self.path).name), ("program.args", self.args), ("program.env", self.env))
        return " ".join(word(key, text) for key, text in texts if text)

    def write(self, out):
        if not Path(self.path).is_file():
            raise Unusable(f"PROGRAM={self.path}: no such file")
        if self.files and not Path(self.files).is_dir():
            raise Unusable(f"FILES={self.files}: no such folder")
        try:
            data = cpio_image(self.path, self.files or None)
        except (OSError, ValueError) as why:
            raise Unusable(str(why)) from why
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        Path(out).write_bytes(data)
        return out


def word(key, text):
    """KEY="text" for the kernel's command line, which takes printable ASCII (kernel/core/cmdline.h)."""
    if not all(" " <= c <= "~" for c in text):
        raise Unusable(f"{key}={text!r}: only printable ASCII can be passed")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'{key}="{escaped}"' if key != "program" or " " in text or escaped != text else f"{key}={text}"


def add_arguments(parser):
    parser.add_argument("--program", default="", help="a static ELF of x86-64 Linux, with its environment and arguments, as for a shell")
    parser.add_argument("--files", default="", help="a folder with files that it sees")


def program_of(args):
    """The Program that the arguments name, or None. Raises Unusable."""
    if not args.program:
        if args.files:
            raise Unusable("FILES is given without PROGRAM")
        return None
    try:
        words = shlex.split(args.program)
    except ValueError as why:
        raise Unusable(f"PROGRAM={args.program}: {why}") from why
    env = list(itertools.takewhile(lambda word: re.match(r"\w+=", word), words))
    if len(env) == len(words):
        raise Unusable(f"PROGRAM={args.program}: it names no program")
    path, *rest = words[len(env) :]
    return Program(path, shlex.join(rest), args.files, shlex.join(env))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--out", required=True, help="the module to write")
    args = parser.parse_args()
    try:
        program = program_of(args)
        if program:
            words = program.words
            program.write(args.out)
            print(words)
    except Unusable as why:
        print(why, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
