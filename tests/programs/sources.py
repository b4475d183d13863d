"""Sources of programs of others, and how programs are built of them: for `make test WHAT=programs` and `make bench WHAT=programs`."""

import shutil
from pathlib import Path

from fetch import Missing, call

LUA = ("lupa", "2.8", "third-party/lua54")  # this package carries Lua's repository, tests included
LUA_FLAGS = ("-DLUA_USE_POSIX", "-DLUA_COMPAT_5_3")
SQLITE_FLAGS = ("-DSQLITE_THREADSAFE=1", "-DSQLITE_OMIT_LOAD_EXTENSION")
MIMALLOC_FLAGS = ("-DMI_STATIC_LIB", "-DNDEBUG")
MALLOC_SIMPLE_FLAGS = ("-DUSE_CLOCK_GETTIME", "-D_ISOMAC", "-DIS_IN(x)=0", "-D_GNU_SOURCE", "-include", "time.h")


class Builder:
    def __init__(self, build, fetcher):
        self.out, self.fetcher = Path(build).resolve() / "programs", fetcher
        self.out.mkdir(parents=True, exist_ok=True)

    def libraries(self):
        """(name, words for compile()) of each C library that is here."""
        yield "glibc", {}
        if shutil.which("musl-gcc"):
            yield "musl", {"compiler": "musl-gcc"}
        else:
            print("skipped: musl: there is no musl-gcc (musl-tools)")

    def compile(self, name, sources, *flags, compiler="gcc", link=("-lm", "-lpthread")):
        """A static program, or with -pie a dynamic one. It is not built again as long as it is newer than its sources."""
        out = self.out / name
        sources = [Path(source) for source in sources]
        if not out.exists() or any(source.stat().st_mtime > out.stat().st_mtime for source in sources):
            form = () if {"-static-pie", "-pie"} & set(flags) else ("-static",)
            call([compiler, "-w", *form, "-O1", *flags, *map(str, sources), "-o", str(out), *link], f"{name} cannot be built")
        return out


def lua(builder):
    package, version, folder = LUA
    source = builder.fetcher.sdist(package, version) / folder
    return source, [path for path in sorted(source.glob("*.c")) if path.name not in ("onelua.c", "ltests.c", "luac.c")]


def sqlite(builder):
    """The files of speedtest1, and the folder with sqlite3.h."""
    source = builder.fetcher.source("sqlite3")
    work = builder.out / "sqlite"
    if not (work / "sqlite3.c").is_file():
        if not shutil.which("tclsh"):
            raise Missing("sqlite3.c is made by tclsh, which is not installed")
        work.mkdir(parents=True, exist_ok=True)
        call([str(source / "configure"), "--disable-tcl", "--disable-readline"], "sqlite3", cwd=work)
        call(["make", "sqlite3.c"], "sqlite3.c", cwd=work)
    return [source / "test/speedtest1.c", work / "sqlite3.c"], work


def mimalloc(builder, test):
    """The files of one of mimalloc's tests, with the allocator among them, and its folders of headers."""
    source = builder.fetcher.source("mimalloc")
    return [source / "src/static.c", source / f"test/{test}.c"], [f"-I{source}/{folder}" for folder in ("include", "test")]


def malloc_simple(builder):
    """The files of glibc's bench-malloc-simple, and flags with which it is built outside of glibc."""
    source = builder.fetcher.source("glibc", "trixie")
    headers = [word for folder in (source, source / "sysdeps/generic") for word in ("-idirafter", str(folder))]
    return [source / f"benchtests/{name}.c" for name in ("bench-malloc-simple", "json-lib")], [*MALLOC_SIMPLE_FLAGS, *headers]
