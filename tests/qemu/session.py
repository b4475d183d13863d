"""Types into the monitor of a running guest, like a person at its serial line."""

import re

from guest import Guest

PROMPT = "ashlar> "


class Session(Guest):
    """A guest that waits at the monitor's prompt. Use it as a context manager."""

    def __enter__(self):
        super().__enter__()
        self.text = ""
        self.prompt(120)
        return self

    def prompt(self, seconds=60):
        """The text that was printed until the next prompt."""
        self.child.expect_exact(PROMPT, timeout=seconds)
        before = self.child.before.replace("\r", "")
        self.text += before + PROMPT
        return before

    def command(self, line, seconds=60):
        """Type a line; returns the text that it printed, without the echo."""
        self.send(line + "\r")
        return self.prompt(seconds).partition("\n")[2]

    def expect(self, pattern, seconds=60):
        self.child.expect(pattern, timeout=seconds)
        self.text += self.child.before.replace("\r", "") + self.child.after
        return self.child.match

    def poweroff(self):
        """End the run; returns its outcome."""
        self.send("poweroff\r")
        self.lines = self.text.split("\n")
        return self.finish(600)


def names_in_help(text):
    return re.findall(r"^  (\w+) +\S", text, re.M)
