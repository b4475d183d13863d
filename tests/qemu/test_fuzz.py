"""Runs the inputs that fuzzing found and that were kept (tests/fuzz/corpus) through each harness again, under sanitizers."""

import subprocess

import patience
import pytest
from machine import ROOT

FUZZ = ROOT / "tests/fuzz"
HARNESSES = sorted(path.stem for path in FUZZ.glob("*_fuzz.c"))
SECONDS = 120
FLAGS = "-g -O1 -std=gnu11 -fsanitize=address,undefined -fno-sanitize-recover=all".split()


def replay_program(harness, build, tmp_path):
    """Build a harness with replay.c; some harnesses need the whole hosted machine."""
    if harness in ("ops_fuzz", "options_fuzz", "balloon_fuzz"):
        program = build / "host/asan" / harness.replace("_fuzz", "_replay")
        assert program.exists(), f"{program} is not built: run make host-replay"
        return program
    argv = ["gcc", *FLAGS, "-I.", "-Iarch/x86_64/include", f"tests/fuzz/{harness}.c", "tests/fuzz/replay.c", "-o", str(tmp_path / harness)]
    made = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[-2000:]
    return tmp_path / harness


@pytest.mark.parametrize("harness", HARNESSES)
def test_saved_inputs(harness, build, tmp_path):
    inputs = sorted((FUZZ / "corpus" / harness).iterdir())
    assert inputs, f"no inputs are kept for {harness}"
    argv = [str(replay_program(harness, build, tmp_path)), *map(str, inputs)]
    done = patience.run(argv, SECONDS)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert done.stdout.count(" bytes\n") >= len(inputs), done.stdout[-2000:]
