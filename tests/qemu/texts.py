"""Texts of rows that tests and tools read. A line that is neither a row nor a comment is an error, not a row less."""

import re


def rows(path, pattern):
    """The groups of each row, all of which `pattern` matches. Comments, which begin with #, and empty lines stand between rows."""
    text = re.sub(r"^(?:#.*)?\n", "", path.read_text(encoding="utf-8"), flags=re.M)
    others = re.sub(rf"^(?:{pattern})\n", "", text, flags=re.M).splitlines() if text else ["the whole file"]
    if others:
        raise ValueError(f"{path.name}: this is no row: {others[0]}")
    return re.findall(rf"^(?:{pattern})$", text, re.M)
