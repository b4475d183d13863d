#!/usr/bin/env python3
"""Boots the kernel on a terminal, for `make run` and `make debug`. The program needs only the standard library.

Exit status: 0 if the kernel's verdict is pass and QEMU's status agrees. If the run fails because its program ended with another status
than 0, that status. Else 1, or 2 if the machine cannot be made.
"""

import argparse
import os
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path

import program
from machine import CMDLINE_MOST, FIRMWARES, Machine, Unavailable, command, make_iso, version_of
from verdict import clean, judge, program_status


def arguments():
    parser = argparse.ArgumentParser(description="Boot the Ashlar kernel in QEMU.")
    parser.add_argument("--build", default="build", help="where ashlar.elf is")
    parser.add_argument("--firmware", default="bios", choices=FIRMWARES)
    parser.add_argument("--cpus", type=int, default=32)
    parser.add_argument("--mem", default="12G")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--accel", default="auto")
    parser.add_argument("--cpu", default="max")
    parser.add_argument("--qemu", default="auto")
    parser.add_argument("--cmdline", default="")
    parser.add_argument("--balloon", action="store_true", help="with a virtio-balloon device")
    program.add_arguments(parser)
    parser.add_argument("--timeout", type=float, default=0, help="seconds; 0: never")
    parser.add_argument("--debug", action="store_true", help="halted, with gdb attached")
    parser.add_argument("--print", action="store_true", help="print QEMU's command line and stop")
    return parser.parse_args()


def pump(child, lines):
    """Shows the console while it is printed, and keeps its lines for the verdict."""
    rest = b""
    while chunk := os.read(child.stdout.fileno(), 65536):
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
        *whole, rest = (rest + chunk).split(b"\n")
        lines += [clean(line.decode("utf-8", "replace")) for line in whole]
    lines.append(clean(rest.decode("utf-8", "replace")))


def run(argv, timeout):
    """Run the machine to its end: (console lines, exit status, seconds). The terminal stays the keyboard of the guest."""
    lines, started = [], time.monotonic()
    child = subprocess.Popen(argv, stdout=subprocess.PIPE)
    killer = threading.Timer(timeout, child.kill) if timeout else None
    if killer:
        killer.daemon = True
        killer.start()
    try:
        pump(child, lines)
        child.wait()
    except KeyboardInterrupt:
        child.terminate()
        child.wait()
    finally:
        if killer:
            killer.cancel()
    return lines, child.returncode, time.monotonic() - started


def debug(argv, kernel, build):
    """Run gdb on a QEMU that is halted behind its gdb stub; the console goes to a file."""
    console, socket = build / "debug.console", build / "debug.gdb.sock"
    socket.unlink(missing_ok=True)
    at = argv.index("-nographic")
    argv[at : at + 1] = ["-display", "none", "-monitor", "none", "-serial", f"file:{console}"]
    argv += ["-S", "-gdb", f"unix:path={socket},server=on,wait=off"]
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    try:
        for _ in range(200):
            if socket.exists() or child.poll() is not None:
                break
            time.sleep(0.05)
        if not socket.exists():
            print("QEMU did not open its gdb stub within 10 s", file=sys.stderr)
            return 2
        print(f"The console goes to {console}; 'console' in gdb shows its end.")
        printers, script = Path(__file__).with_name("printers.py"), Path(__file__).with_name("debug.gdb")
        gdb = ["gdb", "-q", "-x", str(printers), "-ex", f"target remote {socket}", "-x", str(script)]
        environment = dict(os.environ, ASHLAR_CONSOLE=str(console))
        return subprocess.run(gdb + [str(kernel)], env=environment, check=False).returncode
    finally:
        child.kill()
        child.wait()
        socket.unlink(missing_ok=True)


def machine_of(args, build):
    """The machine, with the module of the program if there is one."""
    machine = Machine(args.firmware, args.cpus, args.mem, args.nodes, args.cmdline, args.accel, args.cpu, args.qemu, balloon=args.balloon)
    chosen = program.program_of(args)
    if chosen:
        words = f"{chosen.words} {args.cmdline}".strip()
        machine = machine.with_words(words, module=str(chosen.write(build / "program.cpio")))
    if len(machine.kernel_words) > CMDLINE_MOST:
        raise program.Unusable(f"the command line has {len(machine.kernel_words)} characters; the kernel reads {CMDLINE_MOST}")
    return machine


def main():
    args = arguments()
    build = Path(args.build).resolve()
    kernel, iso = build / "ashlar.elf", build / "run.iso"
    try:
        machine = machine_of(args, build)
        argv = command(machine, kernel, iso)
        if args.print:
            print(shlex.join(argv))
            return 0
        if machine.firmware in ("bios", "uefi"):
            make_iso(kernel, machine.kernel_words, iso, machine.module)
    except (Unavailable, ValueError, RuntimeError, program.Unusable) as why:
        print(why, file=sys.stderr)
        return 2
    if args.debug:
        return debug(argv, kernel, build)
    accel = argv[argv.index("-accel") + 1]
    print(f"QEMU {version_of(argv[0])[0]}, {accel}, {machine.name}. Ctrl-A X quits.", flush=True)
    lines, status, seconds = run(argv, args.timeout)
    verdict, problem = judge(lines, status)
    if problem:
        print(f"\nNot a verdict after {seconds:.1f} s: {problem}", file=sys.stderr)
    if problem or verdict not in ("pass", "fail"):
        return 1
    return 0 if verdict == "pass" else program_status(lines) or 1


if __name__ == "__main__":
    sys.exit(main())
