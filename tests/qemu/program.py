#!/usr/bin/env python3
"""What `make run PROGRAM=` passes to the kernel: one module with the program and its files, and words of the command line.

    program.py --program ./a.out --args "-v 'a b'" --files dir --env "HOME=/" --out build/program.cpio

It writes the module and prints the words: program=a.out args="-v 'a b'" env="HOME=/". The kernel splits the texts of args= and env= as a
shell does (kernel/program/arguments.h).
"""

import argparse
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import cpio


class Unusable(Exception):
    """The program cannot be passed to the kernel; the text says why."""


@dataclass(frozen=True)
class Program:
    path: str
    args: str = ""
    files: str = ""
    env: str = ""

    @property
    def words(self):
        texts = (("program", Path(self.path).name), ("args", self.args), ("env", self.env))
        return " ".join(word(key, text) for key, text in texts if text)

    def write(self, out):
        """Write the module. Raises Unusable."""
        if not Path(self.path).is_file():
            raise Unusable(f"PROGRAM={self.path}: no such file")
        for key in ("args", "env"):
            try:
                shlex.split(getattr(self, key))
            except ValueError as why:
                raise Unusable(f"{key.upper()}={getattr(self, key)}: {why}") from why
        if self.files and not Path(self.files).is_dir():
            raise Unusable(f"FILES={self.files}: no such folder")
        try:
            data = cpio.image(self.path, self.files or None)
        except (OSError, ValueError) as why:
            raise Unusable(str(why)) from why
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        Path(out).write_bytes(data)
        return out


def word(key, text):
    """KEY="text" for the kernel's command line, which takes printable ASCII (kernel/core/cmdline.h)."""
    if not all(" " <= c <= "~" for c in text):
        raise Unusable(f"{key.upper()}={text!r}: only printable ASCII can be passed")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'{key}="{escaped}"' if key != "program" or " " in text or escaped != text else f"{key}={text}"


def add_arguments(parser):
    parser.add_argument("--program", default="", help="a static ELF of x86-64 Linux")
    parser.add_argument("--args", default="", help="its arguments, quoted as for a shell")
    parser.add_argument("--files", default="", help="a folder with files that it sees")
    parser.add_argument("--env", default="", help="its environment, quoted as for a shell")


def program_of(args):
    """The Program that the arguments name, or None. Raises Unusable if there are arguments for no program."""
    if args.program:
        return Program(args.program, args.args, args.files, args.env)
    for key in ("args", "files", "env"):
        if getattr(args, key):
            raise Unusable(f"{key.upper()} is given without PROGRAM")
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--out", required=True, help="the module to write")
    args = parser.parse_args()
    try:
        program = program_of(args)
        if program:
            words = program.words
            program.write(args.out)
            print(words)
    except Unusable as why:
        print(why, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
