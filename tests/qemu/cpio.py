"""Writes cpio images of format "newc" (kernel/program/cpio.h): the program and the files that `make run PROGRAM=` passes to the kernel.

The same input makes the same image: files are sorted, and owners, times and inodes are left out.
"""

import os
import stat
from pathlib import Path

LARGEST = 0xFFFFFFFF  # 8 hexadecimal digits


def padded(data):
    return data + bytes(-len(data) % 4)


def entry(name, mode, data=b""):
    """One entry. `name` is bytes or text without a leading slash."""
    name = os.fsencode(name) + b"\0"
    if len(data) > LARGEST:
        raise ValueError(f"{os.fsdecode(name[:-1])}: {len(data)} bytes do not fit into a cpio image")
    links = 2 if stat.S_ISDIR(mode) else 1
    numbers = (0, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(name), 0)
    header = b"070701" + b"".join(b"%08x" % number for number in numbers)
    return padded(header + name) + padded(data)


def trailer():
    return entry("TRAILER!!!", 0)


def entry_of(path, name):
    """The entry of a file, a folder or a symbolic link; None for what is none of these (sockets, devices)."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return entry(name, mode, os.fsencode(os.readlink(path)))
    if stat.S_ISDIR(mode):
        return entry(name, mode)
    return entry(name, mode, path.read_bytes()) if stat.S_ISREG(mode) else None


def tree(folder):
    """(path, name) of all that lies below a folder, folders before what they contain."""
    for here, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(folders + files):
            path = Path(here) / name
            yield path, path.relative_to(folder).as_posix()


def image(program, folder=None):
    """The program first, under its file name, then all that lies below the folder. A file of the same name as the program must be the
    program itself."""
    program = Path(program)
    data = program.read_bytes()
    parts = [entry(program.name, stat.S_IFREG | 0o755, data)]
    for path, name in tree(folder) if folder else ():
        if name == program.name:
            if not path.is_file() or path.read_bytes() != data:
                raise ValueError(f"{path} and the program have the same name and are different files")
            continue
        parts.append(entry_of(path, name))
    return b"".join(part for part in parts if part) + trailer()
