"""What a dynamic program of x86-64 Linux needs: its interpreter and its shared libraries, where this machine has them.

ELF files are read, and nothing of them is executed. The places are those in which the dynamic linkers of glibc and musl look (ld.so(8)).
"""

import os
import re
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NEEDED, DT_STRTAB, DT_RPATH, DT_RUNPATH = 1, 5, 15, 29
X86_64, CLASS_64, LITTLE = 62, 2, 1
DEFAULT = ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib")
MUSL_PATH = Path("/etc/ld-musl-x86_64.path")
MUSL_DEFAULT = "/lib:/usr/local/lib:/usr/lib"
CACHE = "/etc/ld.so.cache"
OPENED = "libgcc_s.so.1"  # glibc opens it itself, e.g. when a thread is cancelled


class Unusable(Exception):
    """A program cannot be passed to the kernel; the text says why."""


@dataclass(frozen=True)
class Elf:
    interpreter: str = ""
    needed: tuple = ()
    rpath: tuple = ()
    runpath: tuple = ()


def text_at(data, offset):
    return os.fsdecode(data[offset : data.index(b"\0", offset)])


def words_of(dynamic, tag):
    return [value for key, value in dynamic if key == tag]


def parse_elf(data):
    """The Elf in these bytes. Raises ValueError with the reason in words if it is none that x86-64 Linux can run or load."""
    if data[:2] == b"#!":
        with_what = os.fsdecode(data[2:].split(b"\n", 1)[0].strip())
        raise ValueError(f"it is a script: run {with_what} with the script as its argument, and name the script in FILES")
    if data[:4] != b"\x7fELF":
        raise ValueError("it is no ELF file")
    kind = (*data[4:6], *data[18:20])
    if kind != (CLASS_64, LITTLE, X86_64, 0):
        raise ValueError(f"it is for another machine than x86-64 (class, byte order, machine: {kind})")
    try:
        at, size, count = *struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54)
        headers = [struct.unpack_from("<II6Q", data, at + i * size) for i in range(count)]
        loads = [(virt, offset, in_file) for kind, _, offset, virt, _, in_file, _, _ in headers if kind == PT_LOAD]
        interpreter = [text_at(data, header[2]) for header in headers if header[0] == PT_INTERP]
        tables = [data[header[2] : header[2] + header[5] // 16 * 16] for header in headers if header[0] == PT_DYNAMIC]
        dynamic = list(struct.iter_unpack("<QQ", b"".join(tables)))
        strings = next((virt_to_offset(loads, value) for value in words_of(dynamic, DT_STRTAB)), 0)
        texts = {tag: [text_at(data, strings + value) for value in words_of(dynamic, tag)] for tag in (DT_NEEDED, DT_RPATH, DT_RUNPATH)}
    except (struct.error, StopIteration, ValueError) as why:
        raise ValueError("it is damaged or truncated") from why
    paths = [tuple(filter(None, ":".join(texts[tag]).split(":"))) for tag in (DT_RPATH, DT_RUNPATH)]
    return Elf(*interpreter[:1] or ("",), tuple(texts[DT_NEEDED]), *paths)


def virt_to_offset(loads, at):
    return next(at - virt + offset for virt, offset, size in loads if virt <= at < virt + size)


def read_elf(path):
    try:
        return parse_elf(Path(path).read_bytes())
    except OSError as why:
        raise ValueError(why.strerror) from why


def cached():
    """{name: path} of the libraries that ld.so.cache names. Variants for newer CPUs are left out, as the linker does without them."""
    tool = shutil.which("ldconfig", path=f"{os.environ.get('PATH', '')}:/sbin:/usr/sbin")
    done = tool and subprocess.run([tool, "-p"], capture_output=True, text=True, timeout=200, check=False)
    return dict(re.findall(r"^\t(\S+) \(libc6,x86-64\) => (\S+)$", done.stdout, re.M)[::-1]) if done else {}


class Linker:
    """Looks for libraries as the program's interpreter does. `environment`: {name: value}."""

    def __init__(self, interpreter, environment):
        self.musl = os.path.basename(interpreter).startswith("ld-musl")
        self.interpreter = interpreter
        self.first = tuple(filter(None, re.split("[:;]", environment.get("LD_LIBRARY_PATH", ""))))
        self.preloaded = tuple(filter(None, re.split("[: ]", environment.get("LD_PRELOAD", ""))))
        self.opened = () if self.musl else (OPENED,)
        self.cache = {} if self.musl else cached()
        self.last = DEFAULT
        if self.musl:
            text = MUSL_PATH.read_text(encoding="utf-8") if MUSL_PATH.is_file() else MUSL_DEFAULT
            self.last = tuple(filter(None, re.split("[:\n]", text)))

    def is_itself(self, name):
        return name == os.path.basename(self.interpreter) or self.musl and name.startswith("libc.")

    def find(self, name, elf, origin, rpath):
        """(path, Elf) of a library for an object in the folder `origin`; None if there is none."""
        own = elf.runpath if elf.runpath else elf.rpath + rpath
        places = [place for group in ((self.first, own) if elf.runpath else (own, self.first)) for place in group]
        places = [re.sub(r"\$(ORIGIN\b|\{ORIGIN\})", lambda _: origin, place) for place in places]
        candidates = [f"{place}/{name}" for place in places]
        candidates += [self.cache[name]] if name in self.cache else []
        candidates += [f"{place}/{name}" for place in self.last]
        for path in [name] if "/" in name else candidates:
            try:
                return path, read_elf(path)
            except ValueError:
                continue  # as the dynamic linker does with a library for another machine
        return None

    def closure(self, path, elf, origin, missing):
        """Paths of all libraries that an object needs, itself left out. `missing` is called with (name, the object's path) if there is no
        such library."""
        found, queue = {}, [(path, elf, origin, ())]
        while queue:
            user, elf, origin, rpath = queue.pop(0)
            for name in elf.needed + (self.preloaded + self.opened if user == path else ()):
                if self.is_itself(name) or name in found:
                    continue
                found[name] = self.find(name, elf, origin, rpath)
                if found[name] is None and name not in self.opened:
                    missing(name, user)
                elif found[name]:
                    library, its = found[name]
                    queue.append((library, its, os.path.dirname(library), () if elf.runpath else elf.rpath + rpath))
        return [library for library, _ in filter(None, found.values())]
