"""Types into the monitor of a running guest, as a person at its serial line would."""

import re

from guest import Guest

PROMPT = "ashlar> "


class Session(Guest):
    """A guest that stands at the monitor's prompt. Use as a context manager."""

    def __enter__(self):
        super().__enter__()
        self.text = ""
        self.prompt(120)
        return self

    def prompt(self, seconds=60):
        """What was printed until the next prompt."""
        self.child.expect_exact(PROMPT, timeout=seconds)
        before = self.child.before.replace("\r", "")
        self.text += before + PROMPT
        return before

    def command(self, line, seconds=60):
        """Type a line; what it printed, without the echo."""
        self.send(line + "\r")
        return self.prompt(seconds).partition("\n")[2]

    def expect(self, pattern, seconds=60):
        self.child.expect(pattern, timeout=seconds)
        self.text += self.child.before.replace("\r", "") + self.child.after
        return self.child.match

    def poweroff(self):
        """End the run; its outcome."""
        self.send("poweroff\r")
        self.lines = self.text.split("\n")
        return self.finish(600)


def names_in_help(text):
    return re.findall(r"^  (\w+) +\S", text, re.M)
