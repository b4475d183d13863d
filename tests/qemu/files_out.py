"""What a program leaves behind: the cpio images (format newc) that the kernel sends with program.out=on (kernel/program/files_out.h).

Nothing in them is believed: a name that would leave the folder, a file of another kind and an image that is cut are refused by name.
"""

import os
import stat
from pathlib import Path

HEADER, NUMBERS, LAST = 110, 13, b"TRAILER!!!"


class Refused(Exception):
    """The image, or a name in it, cannot be used; the text says why."""


def aligned(number):
    return -(-number // 4) * 4


def entries(data):
    """(name, mode, contents) of each file. Several images may follow each other, and the last one must be whole."""
    at, whole = 0, False
    while at < len(data):
        header, whole = bytes(data[at : at + HEADER]), False
        try:
            numbers = [int(header[6 + 8 * i : 14 + 8 * i].decode("ascii"), 16) for i in range(NUMBERS)]
        except ValueError:
            numbers = []
        if not header.startswith(b"070701") or len(header) < HEADER or not numbers or min(numbers) < 0:
            raise Refused(f"no header at byte {at}")
        mode, size, length = numbers[1], numbers[6], numbers[11]
        start = aligned(at + HEADER + length)
        name = bytes(data[at + HEADER : at + HEADER + length])
        at = aligned(start + size)
        if at > len(data) or not name.endswith(b"\0") or b"\0" in name[:-1]:
            raise Refused(f"it is cut, or wrong, in the entry {name!r}")
        if name[:-1] == LAST:
            whole = True
        else:
            yield name[:-1], mode, data[start : start + size]
    if not whole:
        raise Refused("it has no end: the machine died before all files were sent")


def place(folder, name):
    """Where a file of that name goes. No part of it is "..", and no link leads out of the folder."""
    path, root = folder / os.fsdecode(name), Path(os.path.realpath(folder))
    inside = Path(os.path.realpath(path.parent)).is_relative_to(root)
    if name.startswith(b"/") or not {b"", b".", b".."}.isdisjoint(name.split(b"/")) or not inside:
        raise Refused(f"the name {name!r} leads out of the folder")
    return path


def bring(data, folder):
    """Write the files with their modes. Returns how many, and how many bytes."""
    count = total = 0
    for name, mode, contents in entries(data):
        if not stat.S_ISREG(mode):
            raise Refused(f"{name!r} is no regular file")
        path = place(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # it may be a link
        path.write_bytes(contents)
        path.chmod(mode & 0o777)
        count, total = count + 1, total + len(contents)
    return count, total
