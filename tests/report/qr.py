"""Reads the QR codes with which a machine that has only a screen shows its results (end=cycle), from pictures of it.

A code is a piece of the text behind a line that says which, "ASHLAR-QR 2/3 5d1f20c7": number, how many there are, sum of the whole text.
The pieces may come in any order, from any number of pictures, and some of them twice (kernel/console/results.h). zbarimg finds the codes.
"""

import re
import subprocess

HEAD = re.compile(rb"ASHLAR-QR (\d+)/(\d+) ([0-9a-f]{8})\n")
WORDS = ("zbarimg", "--quiet", "--raw", "--oneshot", "-Sdisable", "-Sqrcode.enable", "-Sbinary")


class Unreadable(Exception):
    """The pictures do not have the whole text of one run; the text says why."""


def sum_of(text):
    total = 0
    for byte in text:
        total = (total * 31 + byte) & 0xFFFFFFFF
    return f"{total:08x}".encode()


def join(codes):
    """The text of these codes; what has no head is not one of ours."""
    pieces, runs = {}, set()
    for code in codes:
        head = HEAD.match(code)
        if head:
            pieces[int(head[1])] = code[head.end() :]
            runs.add((int(head[2]), head[3]))
    if len(runs) != 1:
        raise Unreadable(f"the pictures are of {len(runs)} runs" if runs else "there is no code of Ashlar in the pictures")
    [(count, total)] = runs
    lost = [str(number) for number in range(1, count + 1) if number not in pieces]
    if lost:
        raise Unreadable(f"of {count} codes there is no picture of {', '.join(lost)}")
    text = b"".join(pieces[number] for number in range(1, count + 1))
    if sum_of(text) != total:
        raise Unreadable("the codes were misread: their sum is wrong")
    return text


def code_of(picture):
    """The bytes of the code in this file; none if there is none, or it is no picture."""
    return subprocess.run([*WORDS, str(picture)], capture_output=True, check=False).stdout


def read(folder):
    """The text of all pictures of a folder."""
    return join(code_of(path) for path in sorted(folder.iterdir()))
