#!/usr/bin/env python3
"""`make bench WHAT=against FILES=REVISION`: this tree beside another revision, on one machine, in turn: old, new, old, new ...

The revision is checked out and built under BUILD/against. Both kernels run with the same command line, in the same QEMU or hosted, and each
boot is one run of the comparison (compare.py).
"""

import os
import shutil
import subprocess
import sys
from dataclasses import replace

import compare
from legs import ROOT, arguments, chosen, run_all

TURNS = 6


def check_out(revision, tree):
    """Leave the revision in the folder; False if git does not know it. Only files that differ are written, and so built again."""
    tree.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "GIT_INDEX_FILE": str(tree.with_name("index"))}
    words = ["git", "-C", str(ROOT), f"--work-tree={tree}", "read-tree", "-u", "--reset", revision]
    return subprocess.run(words, env=environment, check=False).returncode == 0


def build(tree, legs):
    """Build there what the legs run. The words of this make are not for that one."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    goals = sorted({f"host-{leg.build}" for leg in legs if leg.build})
    words = ["make", "-C", str(tree), "kernel", *goals, "BUILD=build"]
    return subprocess.run(words, env=environment, stdout=subprocess.DEVNULL, check=False).returncode == 0


def turns(legs, count, old):
    """Each leg in the old tree's build and in ours. Its folder is its side."""
    for turn in range(1, count + 1):
        for leg in legs:
            yield from (replace(leg, name=f"{side}/{leg.name}-{turn}", tree=tree) for side, tree in (("old", old), ("new", "")))


def main():
    args = arguments("Compare this tree with a revision.", "--revision", "--turns")
    legs, folder = chosen(args.only), args.build.resolve() / "against"
    tree = folder / "tree"
    if not check_out(args.revision, tree) or not build(tree, legs):
        print(f"FILES={args.revision}: no revision that can be had and built, as HEAD~5 may be one", file=sys.stderr)
        return 2
    for side in ("old", "new"):
        shutil.rmtree(folder / side, ignore_errors=True)
        (folder / side).mkdir()
    run_all(list(turns(legs, int(args.turns or TURNS), str(tree / "build"))), args.build.resolve(), folder)
    return compare.main(folder / "old", folder / "new")


if __name__ == "__main__":
    sys.exit(main())
