"""How far a long run is and when it may end, in one line that moves. Only a terminal is shown it."""

import json
import os
import sys
import time


class Progress:
    """Parts of a run, `at_once` of them at a time. The file `kept` has how long each part took in this run and in earlier ones."""

    def __init__(self, kind, parts, kept, at_once=1, out=sys.stdout):
        self.kind, self.left, self.total, self.kept, self.at_once, self.out = kind, list(parts), len(parts), kept, at_once, out
        self.shows = out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.known, self.began = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}, 0

    def time_left(self):
        """A part of which nothing is known takes the mean of the others."""
        known = list(self.known.values())
        seconds = sum(self.known.get(part, sum(known) / len(known)) for part in self.left) / self.at_once if known else 0
        return f"; {seconds / 60:.0f} min left" if seconds >= 60 else f"; {seconds:.0f} s left" if known else ""

    def begin(self, part):
        self.began = time.monotonic()
        if self.shows:
            self.say(f"  {self.kind} {self.total - len(self.left) + 1} of {self.total}, {part.rpartition('::')[2]:.40}{self.time_left()}")

    def end(self, part, seconds=None):
        self.known[part] = round(time.monotonic() - self.began if seconds is None else seconds, 1)
        self.left.remove(part)
        self.kept.parent.mkdir(parents=True, exist_ok=True)
        self.kept.write_text(json.dumps(self.known), encoding="utf-8")

    def say(self, text):
        """Print it in the place of the line that moves."""
        self.out.write("\r\x1b[K" * self.shows + text)
        self.out.flush()
