"""A long run says on a terminal how far it is and how long the rest may take, by what its parts took this time or the last time."""

import io
import json

import pytest
from progress import Progress


@pytest.mark.parametrize("is_terminal", [True, False])
def test_what_remains_is_estimated_and_kept(tmp_path, monkeypatch, is_terminal):
    monkeypatch.setenv("TERM", "xterm")
    out, kept = io.StringIO(), tmp_path / "bench/seconds.json"
    out.isatty = lambda: is_terminal
    for seconds in (100, 500):
        progress = Progress("leg", ["hvo-8", "hvo-32", "clear"], kept, 1, out)
        for part in ("hvo-8", "hvo-32", "clear"):
            progress.begin(part)
            progress.end(part, seconds)
            progress.say(f"{part} ok\n")
    lines = [line.strip() for line in out.getvalue().replace("\n", "\r\x1b[K").split("\r\x1b[K")]
    moving = ["leg 1 of 3, hvo-8", "leg 2 of 3, hvo-32; 3 min left", "leg 3 of 3, clear; 2 min left"]
    again = ["leg 1 of 3, hvo-8; 5 min left", "leg 2 of 3, hvo-32; 3 min left", "leg 3 of 3, clear; 2 min left"]
    assert [line for line in lines if line.startswith("leg")] == (moving + again) * is_terminal
    assert [line for line in lines if line.endswith("ok")] == ["hvo-8 ok", "hvo-32 ok", "clear ok"] * 2
    assert json.loads(kept.read_text()) == dict.fromkeys(["hvo-8", "hvo-32", "clear"], 500)
