#!/usr/bin/env python3
"""`make bench WHAT=balloon` measures how memory that a guest has freed goes back to the host, of Ashlar and of the newest Linux in the same QEMU.

Both run tests/programs/sleeps.c, which touches memory, gives it back and sleeps. A record says what QEMU had before that, at the most and
in the end, and how long after the program's word the memory was gone but for a hundredth of it, and but for a twentieth of what QEMU had.
Further records (balloon_rss) say what it had over time. All go to BUILD/bench/balloon.console, and into the report.
"""

import lzma
import subprocess
import sys
import time
from pathlib import Path

from bench_linux import TRIES, WORDS, kernels
from legs import ROOT, Leg, arguments, head, report

from guest import Guest, process_kib  # tests/qemu, by legs.py
from machine import Machine, kvm_usable
from program import Program, cpio_entry, cpio_trailer

BEFORE = 30  # seconds in which a guest comes to rest before it touches memory
CPUS, MEM, MIB, SECONDS, SETTLED = (4, 1), "4G", 1024, 200, 30

ARGUMENTS = f"{MIB} {BEFORE}"


def linux_image(program, module):
    files = {"init": program.read_bytes(), "balloon.ko": lzma.decompress(module.read_bytes())}
    return b"".join(cpio_entry(name, 0o100755, data) for name, data in files.items()) + cpio_trailer()


def measure(kernel, machine):
    """The figures of one guest, and (ms, KiB) whenever a hundredth more was gone; None if it does not do what it should."""
    with Guest(machine, kernel) as guest:

        def resident():
            return process_kib(guest.child.pid, "VmRSS")

        if not guest.wait_for("begins", SECONDS):
            return None
        time.sleep(BEFORE - 2)
        before = resident()
        if not guest.wait_for("sleeps", SECONDS):
            return None
        start, most, ms = time.monotonic(), process_kib(guest.child.pid, "VmHWM"), {}
        samples = [(0, most)]
        while time.monotonic() < start + SETTLED:
            kib, now = resident(), round((time.monotonic() - start) * 1000)
            for name, limit in ("back_ms", MIB * 1024 // 100), ("all_ms", before // 20):
                if kib - before <= limit:
                    ms.setdefault(name, now)
            if samples[-1][1] - kib > MIB * 1024 // 100:
                samples.append((now, kib))
            time.sleep(0.002)
        return {"before_kib": before, "most_kib": most, "after_kib": resident(), **ms}, [*samples, (SETTLED * 1000, resident())]


def main():
    args = arguments("Measure how memory that a guest has freed goes back to the host.")
    out = args.build / "bench"
    out.mkdir(parents=True, exist_ok=True)
    program, image = out / "sleeps", out / "balloon-linux.cpio"
    subprocess.run(["gcc", "-O1", "-static", str(ROOT / "tests/programs/sleeps.c"), "-o", str(program)], check=True)
    ours = str(Program(str(program), ARGUMENTS).write(out / "balloon.cpio"))
    sides = [("ashlar", args.build / "ashlar.elf", f"program.thp={thp}", ours) for thp in ("always", "never")]
    for series, kernel, _ in kernels(args.tools):
        module = Path(kernel).with_name("virtio_balloon.ko.xz")
        if module.exists():
            image.write_bytes(linux_image(program, module))
            sides += [("linux-" + series, kernel, f"{WORDS} transparent_hugepage={thp} -- {ARGUMENTS}", str(image)) for thp in ("always", "never")]
    bad, path = 0, out / "balloon.console"
    path.write_text(head(Leg("balloon", "sleeps"), "make bench WHAT=balloon", "kvm" if kvm_usable() else "tcg") + "# capture ended balloon\n", encoding="utf-8")

    def say(line):
        print(line, flush=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    for cpus in CPUS:
        for name, kernel, words, module in sides:
            machine = Machine("pvh", cpus, MEM, cmdline=words, balloon=True, module=module, strict=name == "ashlar")
            figures, samples = next(filter(None, (measure(kernel, machine) for _ in range(TRIES))), (None, ()))
            side = f"kernel={name} cpus={cpus} mib={MIB} thp={'always' if 'always' in words else 'never'}"
            bad += not figures
            say(f"BENCH balloon_host {side} " + " ".join(f"{key}={value}" for key, value in figures.items()) if figures else f"{side}: failed")
            for at, kib in samples:
                say(f"BENCH balloon_rss {side} at_ms={at} kib={kib}")
    report(out)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
