"""Reads the screen of a guest: QMP screendumps, decoded glyph by glyph with the kernel's own font.

A character counts as read only if every pixel of its cell agrees with the glyph. A shifted line, a wrong pitch or a torn glyph gives no
character.
"""

import re
from pathlib import Path

import patience
from guest import Guest
from machine import ROOT

FONTS = [ROOT / f"arch/x86_64/consoles/font/spleen-{size}.psfu" for size in ("16x32", "8x16")]
COLUMNS_ENOUGH = 100  # the kernel takes the first font that leaves this many (kernel/console/console_fb.c)


class Font:
    """The ASCII glyphs of a PSF file, whose numbers are their codes in these files, each as rows of bits."""

    def __init__(self, path):
        data = path.read_bytes()
        self.width, self.height = map(int, path.stem.rpartition("-")[2].split("x"))
        at, row, self.glyphs = 4 if data[:2] == b"\x36\x04" else 32, self.width // 8, {}  # the header of PSF 1 or 2
        for code in range(32, 127):
            glyph = data[at + code * row * self.height :]
            lines = (int.from_bytes(glyph[y * row : (y + 1) * row], "big") for y in range(self.height))
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
        lines = []
        for top in range(0, self.height - font.height + 1, font.height):
            line = ""
            for left in range(0, self.width - font.width + 1, font.width):
                cell = tuple(self.bits(left, top + y, font.width) for y in range(font.height))
                line += font.glyphs.get(cell, "\0")
            lines.append(line.rstrip())
        return lines


class Shown(Guest):
    """A running machine whose screen can be read. Use it as a context manager."""

    asked = True

    def press(self, *names):
        self.ask("send-key", keys=[{"type": "qcode", "data": name} for name in names])

    def picture(self):
        """
        The contents of the screen. They are right only if the guest does not draw at the same time: QEMU redraws the parts that were
        written since the last time, and may miss writes that happen while it looks for these parts.
        """
        path = Path(self.scratch.name, "screen.ppm")
        self.ask("screendump", filename=str(path))
        return Picture(path.read_bytes())

    def vga_text(self):
        """The characters in VGA text memory; the glyphs of that mode belong to the card."""
        path = Path(self.scratch.name, "cells")
        self.ask("pmemsave", val=0xB8000, size=80 * 25 * 2, filename=str(path))
        cells = path.read_bytes()[::2].decode("latin-1")
        return [cells[at : at + 80].rstrip() for at in range(0, len(cells), 80)]

    def wait_halted(self, seconds):
        """Wait until the first CPU has halted with interrupts off, at the end of a run with end=halt or of a panic."""

        def is_halted():
            found = re.search(r"[ER]FL=([0-9a-f]+).*HLT=(\d)", self.monitor("info registers"))
            return found and found[2] == "1" and not int(found[1], 16) & 0x200

        assert patience.until(is_halted, seconds), "the guest did not end; its screen shows:\n" + "\n".join(self.picture().text())

    def wait(self, text, seconds, look):
        """The lines on the screen when one of them contains `text`."""
        lines = patience.until(look, seconds, lambda lines: any(text in line for line in lines))
        assert any(text in line for line in lines), f"{text!r} never appeared; the screen shows:\n" + "\n".join(lines)
        return lines
