#!/usr/bin/env python3
"""What `make run PROGRAM=` passes to the kernel: one module with the program, its libraries, its files and its words.

    program.py --program "HOME=/ ./a.out -v 'a b'" --files "data /usr/lib/python3.11" --out build/program.cpio

The module is a cpio image of format "newc" (kernel/program/cpio.h). A static program lies in /. A dynamic one, its interpreter and its
libraries have the same paths as on this machine (libraries.py). The contents of a folder of FILES lie in /, or have their own path if it
was given as an absolute one; `/.` at its end means / again. The words are the files proc/self/cmdline and proc/self/environ, each with a
zero byte behind it. The same input makes the same image: files are sorted, and owners, times and inodes are left out.
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

from libraries import CACHE, Linker, Unusable, parse_elf, read_elf

LARGEST = 0xFFFFFFFF  # 8 hexadecimal digits


def padded(data):
    return data + bytes(-len(data) % 4)


def cpio_entry(name, mode, data=b"", date=0):
    """One entry. `name` is bytes or text without a leading slash, `date` the time of the last change, in seconds since 1970."""
    name = os.fsencode(name) + b"\0"
    if len(data) > LARGEST:
        raise ValueError(f"{os.fsdecode(name[:-1])}: {len(data)} bytes do not fit into a cpio image")
    links = 2 if stat.S_ISDIR(mode) else 1
    numbers = (0, mode, 0, 0, links, date, len(data), 0, 0, 0, 0, len(name), 0)
    header = b"070701" + b"".join(b"%08x" % number for number in numbers)
    return padded(header + name) + padded(data)


def cpio_trailer():
    return cpio_entry("TRAILER!!!", 0)


def kept_of(path):
    """(mode, data) of a file, a folder or a symbolic link; None of what is none of these (sockets, devices)."""
    mode = os.lstat(path).st_mode
    if stat.S_ISREG(mode):
        return mode, Path(path).read_bytes()
    if stat.S_ISLNK(mode):
        return mode, os.fsencode(os.readlink(path))
    return (mode, b"") if stat.S_ISDIR(mode) else None


def cpio_entry_of(path, name):
    kept = kept_of(path)
    return kept and cpio_entry(name, *kept)


def tree(folder):
    """(path, name) of all that lies below a folder, folders before what they contain."""
    for here, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(folders + files):
            path = Path(here) / name
            yield path, path.relative_to(folder).as_posix()


LINKS_MAX = 40


def followed(path, target_of):
    """(a path without links, the links on the way): target_of(path) is where a link leads, or None. Paths are those from /."""
    parts, here, links = path.split("/"), [], []
    while parts:
        part = parts.pop(0)
        there = "/".join([*here, part])
        if part == "..":
            here = here[:-1]
        elif part not in ("", ".") and len(links) < LINKS_MAX and (target := target_of(there)) is not None:
            links.append(there)
            here = [] if target.startswith("/") else here
            parts[:0] = target.split("/")
        elif part not in ("", "."):
            here.append(part)
    return "/".join(here), links


class Image:
    """Entries by their names, in the order in which they came: (mode, data, path on this machine)."""

    def __init__(self):
        self.entries = {}

    def data(self):
        """Files keep their dates: Python compares them with those in its .pyc files."""
        made = (cpio_entry(name, mode, data, int(os.stat(host).st_mtime) if host else 0) for name, (mode, data, host) in self.entries.items())
        return b"".join(made) + cpio_trailer()

    def place(self, name):
        """The name by which the kernel knows an entry: without links among its folders."""

        def target_of(path):
            mode, data, _ = self.entries.get(path, (0, b"", ""))
            return os.fsdecode(data) if stat.S_ISLNK(mode) else None

        folder, _, last = name.rpartition("/")
        return f"{followed(folder, target_of)[0]}/{last}".lstrip("/")

    def put(self, name, mode, data=b"", host=""):
        name = self.place(name)
        there, before, _ = self.entries.setdefault(name, (mode, data, host))
        merged = stat.S_ISDIR(mode) and not stat.S_ISREG(there)
        if not merged and (stat.S_IFMT(there), before) != (stat.S_IFMT(mode), data):
            raise Unusable(f"two different files would have the name /{name}")

    def add(self, path, name):
        if kept := kept_of(path):
            self.put(name, *kept, str(path) if stat.S_ISREG(kept[0]) else "")

    def keep(self, path):
        """What is at this path, with the links on the way to it."""
        path = os.path.join(os.getcwd(), path)
        here, links = followed(path, lambda link: os.readlink(f"/{link}") if os.path.islink(f"/{link}") else None)
        for name in (*links, here):
            self.add(f"/{name}", name)
        for path, name in tree(f"/{here}"):
            self.add(path, f"{here}/{name}")

    def keep_libraries(self, linker, path, elf, missing):
        hosts = {os.path.realpath(host) for _, _, host in self.entries.values() if host}
        for library in linker.closure(path, elf, os.path.dirname(os.path.realpath(path)), missing):
            if os.path.realpath(library) not in hosts:
                self.keep(library)


def words_file(words):
    return b"".join(os.fsencode(word) + b"\0" for word in words)


@dataclass(frozen=True)
class Program:
    path: str
    args: str = ""  # as for a shell, as are the other two
    files: str = ""
    env: str = ""

    def add_program(self, image):
        """Returns argv[0] and, for a dynamic program, what finds its libraries."""
        try:
            elf = read_elf(self.path)
        except ValueError as why:
            raise Unusable(f"PROGRAM={self.path}: {why}") from why
        if not elf.interpreter:
            name = os.path.basename(self.path)
            image.put(name, stat.S_IFREG | 0o755, Path(self.path).read_bytes(), self.path)
            return name, None
        if not os.path.isfile(elf.interpreter):
            raise Unusable(f"PROGRAM={self.path}: its interpreter {elf.interpreter} is not on this machine; a static program needs none")
        linker = Linker(elf.interpreter, dict(word.split("=", 1) for word in shlex.split(self.env)))
        for path in (self.path, elf.interpreter, *(CACHE for _ in linker.cache)):
            image.keep(path)

        def missing(name, user):
            raise Unusable(f"PROGRAM={self.path}: the library {name}, which {user} needs, is not on this machine")

        image.keep_libraries(linker, self.path, elf, missing)
        return os.path.abspath(self.path), linker

    def add_files(self, image, linker):
        """Files with a place of their own come first, because links among them lead others to theirs."""
        before = set(image.entries)
        for word in sorted(shlex.split(self.files), key=keeps_its_place, reverse=True):
            if not os.path.exists(word):
                raise Unusable(f"FILES={word}: no such file or folder")
            if keeps_its_place(word):
                image.keep(word)
            elif not os.path.isdir(word):
                image.add(word, os.path.basename(word))
            else:
                for path, name in tree(word):
                    image.add(path, name)
        for name, (_, data, host) in list(image.entries.items()):
            if linker and name not in before and data[:4] == b"\x7fELF":
                try:
                    image.keep_libraries(linker, host, parse_elf(data), lambda name, user: None)
                except ValueError:
                    continue  # it may be for another machine; who loads it will hear of it

    def image(self):
        image = Image()
        if not os.path.isfile(self.path):
            raise Unusable(f"PROGRAM={self.path}: no such file")
        try:
            name, linker = self.add_program(image)
            self.add_files(image, linker)
            image.put("proc/self/cmdline", stat.S_IFREG | 0o444, words_file([name, *shlex.split(self.args)]))
            image.put("proc/self/environ", stat.S_IFREG | 0o444, words_file(shlex.split(self.env)))
        except (OSError, ValueError) as why:
            raise Unusable(f"PROGRAM={self.path}: {why}") from why
        return image

    def write(self, out):
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        Path(out).write_bytes(self.image().data())
        return out


def keeps_its_place(word):
    return os.path.isabs(word) and not word.endswith("/.")


def add_arguments(parser):
    parser.add_argument("--program", default="", help="an ELF of x86-64 Linux, with its environment and arguments, as for a shell")
    parser.add_argument("--files", default="", help="files and folders that it sees, as for a shell")


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
        if program := program_of(args):
            program.write(args.out)
    except Unusable as why:
        sys.exit(str(why))


if __name__ == "__main__":
    main()
