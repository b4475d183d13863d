#!/usr/bin/env python3
"""Boots the kernel on a terminal, for `make run` and `make debug`. The program needs only the standard library.

Exit status: 0 if the kernel's verdict is pass and QEMU's status agrees. If the run fails because its program ended with another status
than 0, that status. Else 1, or 2 if the machine cannot be made.
"""

import argparse
import contextlib
import fcntl
import mmap
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import termios
import threading
import time
from dataclasses import replace
from pathlib import Path

import files_out
import patience
import program
from machine import CMDLINE_MOST, FROM_IMAGE, Machine, Unavailable, command, make_image, version_of
from verdict import BEGIN, clean, judge, program_status


def arguments():
    parser = argparse.ArgumentParser(description="Boot the Ashlar kernel in QEMU.")
    options = {"build": "build", "firmware": "bios", "cpus": 32, "mem": "12G", "nodes": 1, "accel": "auto", "cpu": "max", "qemu": "auto"}
    for name, default in {**options, "cmdline": ""}.items():
        parser.add_argument(f"--{name}", default=default, type=type(default))
    program.add_arguments(parser)
    parser.add_argument("--files-out", default="", help="a folder for the files that the program writes")
    parser.add_argument("--timeout", type=float, default=0, help="seconds; 0: never")
    parser.add_argument("--debug", action="store_true", help="halted, with gdb attached")
    parser.add_argument("--console", type=Path, help="a file that keeps the console; a terminal is then not shown records")
    parser.add_argument("--print", action="store_true", help="print QEMU's command line and stop")
    return parser.parse_args()


DEBUG_CONSOLE = "debug.console"
RECORD = b"BENCH "
NO_WRAP = b"\x1b[?7l"  # SeaBIOS and GRUB switch the terminal's line wrap off and leave it off
# What QEMU says when KVM cannot run the guest: it then ends, or pauses the guest for ever.
KVM_FAILS = re.compile(rb"KVM internal error|kvm run failed|KVM: (entry failed|unknown exit)|failed to initialize kvm", re.I)


@contextlib.contextmanager
def terminal_kept():
    """A QEMU that is killed leaves the terminal raw and non-blocking, so its modes are put back here."""
    if not os.isatty(0):
        yield
        return
    modes, flags = termios.tcgetattr(0), fcntl.fcntl(0, fcntl.F_GETFL)
    try:
        yield
    finally:
        fcntl.fcntl(0, fcntl.F_SETFL, flags)
        termios.tcsetattr(0, termios.TCSADRAIN, modes)


def show(fd, data):
    """Write all of it, although QEMU makes the terminal that it reads from non-blocking."""
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:
            select.select([], [fd], [])


class Screen:
    """Standard output, and the file that keeps the console if there is one. Then a terminal is not shown the records."""

    def __init__(self, kept=None):
        self.kept, self.hides = kept, kept is not None and os.isatty(1)
        self.line, self.shown, self.records = b"", 0, 0  # the line that has not ended, how much of it was shown, records so far
        self.held = b""  # a carriage return that the kernel may have put before a newline

    def write(self, data):
        """A terminal gets lines as the kernel's port sends them; a file and a pipe get the bytes that were printed."""
        if self.kept:
            self.kept.write(data)
        if not os.isatty(1):
            data = self.held + data
            self.held = data[-1:] if data.endswith(b"\r") else b""
            data = data.removesuffix(self.held).replace(b"\r\n", b"\n")
        show(1, b"".join(map(self.visible, re.findall(rb"[^\n]*\n|[^\n]+", data))) if self.hides else data)

    def visible(self, part):
        """What to show now that the line goes on so: nothing as long as it may be a record."""
        self.line += part
        is_record = RECORD.startswith(self.line[: len(RECORD)])
        new = b"" if is_record else self.line[self.shown :]
        self.shown += len(new)
        if part.endswith(b"\n"):
            self.records += is_record
            self.line, self.shown = b"", 0
        return new


def pump(child, lines, screen):
    """Shows the console while it is printed, without the NO_WRAP of what runs before the kernel, and keeps its lines for the verdict."""
    held = rest = b""  # what may be the beginning of NO_WRAP; a line that has not ended
    began = False
    while chunk := os.read(child.stdout.fileno(), 65536):
        chunk = held + chunk
        if not began:
            chunk = chunk.replace(NO_WRAP, b"")
        held = next(NO_WRAP[:n] for n in range(0 if began else len(NO_WRAP) - 1, -1, -1) if chunk.endswith(NO_WRAP[:n]))
        chunk = chunk.removesuffix(held)
        screen.write(chunk)
        *whole, rest = (rest + chunk).split(b"\n")
        new = [clean(line.decode("utf-8", "replace")) for line in whole]
        began = began or any(map(BEGIN.search, new))
        lines += new
    screen.write(held)
    lines.append(clean((rest + held).decode("utf-8", "replace")))


def watch(child, faults):
    """Shows QEMU's own messages. If KVM cannot run the guest, ends QEMU and keeps the message."""
    for line in child.stderr:
        if KVM_FAILS.search(line):
            faults.append(line.decode("utf-8", "replace").strip())
            child.kill()
            break
        show(2, line)


def run(argv, timeout, screen):
    """Run the machine to its end: (console lines, exit status, what KVM cannot). The terminal stays the keyboard of the guest."""
    lines, faults = [], []
    with terminal_kept(), subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        killer = threading.Timer(timeout or threading.TIMEOUT_MAX, child.kill)
        watcher = threading.Thread(target=watch, args=(child, faults), daemon=True)
        killer.daemon = True
        killer.start()
        watcher.start()
        try:
            pump(child, lines, screen)
            watcher.join()
            child.wait()
        except KeyboardInterrupt:
            pass
        finally:
            child.kill()
            killer.cancel()
    return lines, child.returncode, faults[0] if faults else ""


def debug(argv, kernel, build):
    """Run gdb on a QEMU that is halted behind its gdb stub; the console goes to a file."""
    console, socket = build / DEBUG_CONSOLE, build / "debug.gdb.sock"
    socket.unlink(missing_ok=True)
    argv += ["-S", "-gdb", f"unix:path={socket},server=on,wait=off"]
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    try:
        patience.until(lambda: socket.exists() or child.poll() is not None, 10)
        if not socket.exists():
            print("QEMU did not open its gdb stub", file=sys.stderr)
            return 2
        print(f"The console goes to {console}; 'console' in gdb shows its end.")
        gdb = ["gdb", "-q", "-ex", f"target remote {socket}", "-x", str(Path(__file__).with_name("debug.gdb"))]
        environment = dict(os.environ, ASHLAR_CONSOLE=str(console))
        return subprocess.run(gdb + [str(kernel)], env=environment, check=False).returncode
    finally:
        child.kill()
        child.wait()
        socket.unlink(missing_ok=True)


def machine_of(args, build):
    machine = Machine(args.firmware, args.cpus, args.mem, args.nodes, args.cmdline, args.accel, args.cpu, args.qemu)
    machine = replace(machine, balloon=re.search(r"(?:^|\s)balloon=", args.cmdline) is not None)
    if args.debug:
        machine = replace(machine, serial=("-serial", f"file:{build / DEBUG_CONSOLE}"))
    chosen = program.program_of(args)
    if chosen:
        machine = replace(machine, module=str(chosen.write(build / "program.cpio")))
    if args.files_out and not chosen:
        raise program.Unusable("FILES_OUT is given without PROGRAM")
    if args.files_out:
        Path(args.files_out).mkdir(parents=True, exist_ok=True)
        machine = replace(machine, out=str(build / "files-out.cpio"))
    if len(machine.kernel_words) > CMDLINE_MOST:
        raise program.Unusable(f"the command line has {len(machine.kernel_words)} characters; the kernel reads {CMDLINE_MOST}")
    return machine


def bring_files(image, folder):
    """Write the files that the program left behind. Returns 0, or 1 after a message."""
    try:
        with open(image, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) if size else b""
        count, total = files_out.bring(data, Path(folder)) if size else (0, 0)
        print(f"FILES_OUT={folder}: {count} files, {total} bytes" if size else "FILES_OUT: the kernel has sent nothing", file=sys.stderr)
        return 0 if size else 1
    except (OSError, files_out.Refused) as why:
        print(f"FILES_OUT={folder}: {why}", file=sys.stderr)
        return 1


def main():
    args = arguments()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a shell has its background jobs ignore SIGINT
        signal.signal(number, signal.default_int_handler)
    build = Path(args.build).resolve()
    kernel, iso = build / "ashlar.elf", build / "run.image"
    try:
        machine = machine_of(args, build)
        argv = command(machine, kernel, iso)
        if args.print:
            print(shlex.join(argv))
            return 0
        if machine.firmware in FROM_IMAGE:
            make_image(machine, kernel, iso)
    except (Unavailable, ValueError, RuntimeError, program.Unusable) as why:
        print(why, file=sys.stderr)
        return 2
    if args.debug:
        return debug(argv, kernel, build)
    started = time.monotonic()
    for again in (False, True):
        accel = argv[argv.index("-accel") + 1]
        head = f"QEMU {version_of(argv[0])[0]}, {accel}, {machine.name}. Ctrl-A X quits."
        print(head, flush=True)
        with open(args.console or os.devnull, "wb", buffering=0) as kept:
            kept.write(f"{head}\n".encode())
            screen = Screen(kept if args.console else None)
            lines, status, fault = run(argv, args.timeout, screen)
        if not fault:
            break
        emulated = args.accel == "auto" and not again
        instead = "so QEMU emulates the CPUs" if emulated else "and ACCEL=tcg emulates the CPUs"
        print(f"\nKVM on this host cannot run the guest ({fault}), {instead}.", file=sys.stderr, flush=True)
        if not emulated:
            return 2
        argv = command(replace(machine, accel="tcg"), kernel, iso)
    if screen.records and screen.hides:
        print(f"{screen.records} records (lines BENCH ...) and all of the above: {os.path.relpath(args.console)}", flush=True)
    verdict, problem = judge(lines, status)
    missing = bring_files(machine.out, args.files_out) if machine.out else 0
    if problem:
        print(f"\nNot a verdict after {time.monotonic() - started:.1f} s: {problem}", file=sys.stderr)
    if problem or verdict not in ("pass", "fail"):
        return 1
    return missing if verdict == "pass" else program_status(lines) or 1


if __name__ == "__main__":
    sys.exit(main())
