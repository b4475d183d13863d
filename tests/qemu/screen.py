"""Reads the screen of a guest: QMP screendumps, decoded glyph by glyph with the kernel's own font.

A character counts as read only if every pixel of its cell agrees with the glyph. A shifted line, a wrong pitch or a torn glyph gives no
character.
"""

import json
import re
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from machine import ROOT, command, make_iso

FONTS = [ROOT / f"arch/x86_64/consoles/font/spleen-{size}.psfu" for size in ("16x32", "8x16")]
COLUMNS_ENOUGH = 100  # the kernel takes the first font that leaves this many (kernel/console/console_fb.c)


class Font:
    """The ASCII glyphs of a PSF file, each as a list of rows of bits."""

    def __init__(self, path):
        data = path.read_bytes()
        if data[:2] == b"\x36\x04":
            count, size, at, self.width, self.height = 512 if data[2] & 1 else 256, data[3], 4, 8, data[3]
            table = [entry[:2] for entry in data[at + count * size :].split(b"\xff\xff")]
            codes = [struct.unpack("<H", entry)[0] if len(entry) == 2 else None for entry in table]
        else:
            _, _, at, _, count, size, self.height, self.width = struct.unpack("<8I", data[:32])
            table = data[at + count * size :].split(b"\xff")
            codes = [ord(entry.split(b"\xfe")[0].decode()[0]) if entry else None for entry in table]
        rows = (self.width + 7) // 8
        self.glyphs = {}
        for number, code in enumerate(codes[:count]):
            if code is not None and 32 <= code < 127:
                glyph = data[at + number * size : at + (number + 1) * size]
                lines = [int.from_bytes(glyph[y * rows : (y + 1) * rows], "big") for y in range(self.height)]
                self.glyphs.setdefault(tuple(lines), chr(code))


class Picture:
    """A screendump as a table of lit pixels."""

    def __init__(self, ppm):
        _, size, _, self.pixels = ppm.split(b"\n", 3)
        self.width, self.height = map(int, size.split())

    def bits(self, x, y, width):
        value = 0
        at = (y * self.width + x) * 3
        for _ in range(width):
            value = value << 1 | (self.pixels[at] > 0)
            at += 3
        return value

    def text(self, fonts=tuple(FONTS)):
        """The lines of text in the first of the fonts that leaves enough columns, without blanks at their ends. A cell that shows no glyph
        of the font is a NUL."""
        for path in fonts:
            font = Font(path)
            if self.width // font.width >= COLUMNS_ENOUGH:
                break
        pad = -font.width % 8
        lines = []
        for top in range(0, self.height - font.height + 1, font.height):
            line = ""
            for left in range(0, self.width - font.width + 1, font.width):
                cell = tuple(self.bits(left, top + y, font.width) << pad for y in range(font.height))
                line += font.glyphs.get(cell, "\0")
            lines.append(line.rstrip())
        return lines


class Shown:
    """A running machine whose screen can be read. Use it as a context manager."""

    def __init__(self, machine, kernel):
        self.machine, self.kernel = machine, kernel
        self.scratch = tempfile.TemporaryDirectory(prefix="ashlar-")
        self.folder = Path(self.scratch.name)

    def __enter__(self):
        iso = self.machine.image or None
        if self.machine.firmware in ("bios", "uefi") and not iso:
            iso = make_iso(self.kernel, self.machine.kernel_words, self.folder / "ashlar.iso")
        argv = command(self.machine, self.kernel, iso) + ["-qmp", f"unix:{self.folder}/qmp,server=on,wait=off"]
        self.child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.qmp = None
        return self

    def __exit__(self, *exc):
        self.child.kill()
        self.child.wait()
        if self.qmp:
            self.qmp.close()
        self.scratch.cleanup()

    def _connect(self):
        deadline = time.monotonic() + 20
        while True:
            try:
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(str(self.folder / "qmp"))
                break
            except OSError:
                connection.close()
                assert time.monotonic() < deadline, "QEMU does not open its QMP socket"
                time.sleep(0.05)
        self.qmp = connection.makefile("rw")
        connection.close()
        self.qmp.readline()
        self.ask("qmp_capabilities")

    def ask(self, command_name, **arguments):
        if self.qmp is None:
            self._connect()
        self.qmp.write(json.dumps({"execute": command_name, "arguments": arguments}) + "\n")
        self.qmp.flush()
        while True:
            answer = json.loads(self.qmp.readline() or '{"error": "QEMU has ended"}')
            if "error" in answer:
                raise RuntimeError(f"{command_name}: {answer['error']}")
            if "return" in answer:
                return answer["return"]

    def picture(self):
        """
        The contents of the screen. They are right only if the guest does not draw at the same time: QEMU redraws the parts that were
        written since the last time, and may miss writes that happen while it looks for these parts.
        """
        path = self.folder / "screen.ppm"
        self.ask("screendump", filename=str(path))
        return Picture(path.read_bytes())

    def vga_text(self):
        """The characters in VGA text memory; the glyphs of that mode belong to the card."""
        path = self.folder / "cells"
        self.ask("pmemsave", val=0xB8000, size=80 * 25 * 2, filename=str(path))
        cells = path.read_bytes()[::2].decode("latin-1")
        return [cells[at : at + 80].rstrip() for at in range(0, len(cells), 80)]

    def wait_halted(self, seconds):
        """Wait until the first CPU has halted with interrupts off, at the end of a run with end=halt or of a panic."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            registers = self.ask("human-monitor-command", **{"command-line": "info registers"})
            found = re.search(r"[ER]FL=([0-9a-f]+).*HLT=(\d)", registers)
            if found and found[2] == "1" and not int(found[1], 16) & 0x200:
                return
            time.sleep(0.1)
        raise AssertionError("the guest did not end; its screen shows:\n" + "\n".join(self.picture().text()))

    def wait(self, pattern, seconds, look):
        """The lines on the screen when one of them matches `pattern`, or at the end of the time if none does."""
        deadline = time.monotonic() + seconds
        lines = []
        while time.monotonic() < deadline:
            lines = look()
            if any(pattern in line for line in lines):
                return lines
            time.sleep(0.1)
        raise AssertionError(f"{pattern!r} never appeared; the screen shows:\n" + "\n".join(lines))
