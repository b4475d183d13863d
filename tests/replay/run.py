#!/usr/bin/env python3
"""Boots the hosted kernel as each machine of a folder of texts (tests/host/replay.h) and runs the cases that ask the machine itself."""

import argparse
import subprocess
import sys
from pathlib import Path

CASES = "mm.machine.*"
SECONDS = 600


def run_machine(program, path, cpus):
    """The last line that says why it failed, or None."""
    argv = [str(program), "-x", "-c", str(cpus), "-r", str(path), "-k", f"test={CASES}"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"no end within {SECONDS} s"
    if done.returncode == 0 and "verdict=pass" in done.stdout:
        return None
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    said = [line for line in lines if "machine_map_test" in line or "ashlar-host:" in line or "ERROR" in line]
    return (said or lines or ["nothing was printed"])[-1].strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--dir", type=Path, required=True, help="texts of machines: dmesg, acpidump and cpuid -1 -r in one file each")
    parser.add_argument("--cpus", type=int, default=4, help="threads at most [4]")
    args = parser.parse_args()
    paths = sorted(path for path in args.dir.iterdir() if path.is_file()) if args.dir.is_dir() else []
    failed = 0
    for path in paths:
        why = run_machine(args.build / "host/asan/ashlar-host", path, args.cpus)
        failed += why is not None
        print(f"ok {path.name}" if why is None else f"not ok {path.name}: {why}", flush=True)
    print(f"{len(paths) - failed} machines passed, {failed} failed")
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
