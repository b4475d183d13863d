"""ACPI tables for the kernel to replay: compiled by iasl from tests/acpi, damaged as asked, written as acpidump does."""

import subprocess

from machine import ROOT


def compile_table(name, folder):
    """The bytes of tests/acpi/NAME.asl. A table in iasl's generic form (OEMx) is named by the end of its file's name."""
    out = folder / name
    done = subprocess.run(
        ["iasl", "-p", str(out), str(ROOT / f"tests/acpi/{name}.asl")], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    table = bytearray(out.with_suffix(".aml").read_bytes())
    if table[:3] == b"OEM":
        table[:4] = name.rsplit("-", 1)[1].upper().encode()
    return sum_right(table)


def sum_right(table):
    """The table with the right length and checksum for these bytes."""
    table[4:8] = len(table).to_bytes(4, "little")
    table[9] = 0
    table[9] = -sum(table) & 0xFF
    return table


def dump(tables):
    lines = []
    for number, table in enumerate(tables):
        lines.append(f"{table[:4].decode()} @ 0x{0x7FFE0000 + number * 0x1000:016X}")
        for at in range(0, len(table), 16):
            row = table[at : at + 16]
            picture = "".join(chr(b) if 32 <= b < 127 else "." for b in row)
            lines.append(f"    {at:04X}: {' '.join(f'{b:02X}' for b in row):<48} {picture}")
        lines.append("")
    return "\n".join(lines) + "\n"
