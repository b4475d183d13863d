"""Fetches sources and programs of others for run.py, by Debian's own tools and by pip. Nothing is installed or committed.

Everything is kept in one folder and is fetched once. Debian's packages come from the mirror of this system's apt sources, with private apt
folders and the system's keys.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

RELEASES = ("bookworm", "trixie")  # of source packages
SECONDS = 600


class Missing(Exception):
    """Something cannot be had; the text says what and why."""


def call(argv, what, **more):
    """Run a tool. Raises Missing with the last line that it printed."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False, **more)
    except (OSError, subprocess.TimeoutExpired) as why:
        raise Missing(f"{what}: {why}") from why
    if done.returncode:
        lines = (done.stderr + done.stdout).strip().splitlines() or ["no reason given"]
        raise Missing(f"{what}: {lines[-1]}")
    return done.stdout


class Fetcher:
    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        self.apt = self.folder / "apt"
        self.ready = False

    def _network(self, what):
        if os.environ.get("ASHLAR_OFFLINE"):
            raise Missing(f"{what}: no network (ASHLAR_OFFLINE is set)")

    def _private(self, tool, *words, what, **more):
        """apt with folders of its own; its lists are fetched on first use."""
        self._network(what)
        options = [
            f"Dir::Etc::SourceList={self.apt}/sources.list",
            "Dir::Etc::SourceParts=/dev/null",
            f"Dir::State::Lists={self.apt}/lists",
            f"Dir::Cache={self.apt}/cache",
            f"APT::Sandbox::User={os.environ.get('USER', 'root')}",
            "Acquire::Languages=none",
            "Acquire::http::Timeout=30",
            "APT::Update::Post-Invoke-Success::=",
        ]
        argv = [tool, "-q", *(word for option in options for word in ("-o", option))]
        if not self.ready:
            for name in ("lists/partial", "cache/archives/partial"):
                (self.apt / name).mkdir(parents=True, exist_ok=True)
            (self.apt / "sources.list").write_text(sources())
            call([*argv, "update"], "apt-get update")
            self.ready = True
        return call([*argv, *words], what, **more)

    def package(self, name):
        """The folder with the unpacked files of a binary package."""
        out = self.folder / "deb" / name
        if not out.is_dir():
            work = self.folder / "work"
            work.mkdir(parents=True, exist_ok=True)
            self._private("apt-get", "download", name, what=f"package {name}", cwd=work)
            for deb in work.glob(f"{name}_*.deb"):
                out.parent.mkdir(parents=True, exist_ok=True)
                call(["dpkg", "-x", str(deb), str(out)], f"package {name}")
                deb.unlink()
        return out

    def source(self, name, release=RELEASES[0]):
        """The folder with the original source of a Debian source package, without Debian's changes."""
        out = self.folder / "src" / name
        if not out.is_dir():
            work, what = self.folder / "work" / name, f"source package {name}"
            work.mkdir(parents=True, exist_ok=True)
            why = Missing(f"{what}: no archive")
            try:
                self._private("apt-get", "source", "--download-only", f"{name}/{release}", what=what, cwd=work)
            except Missing as reason:
                why = reason
            archives = [path for path in work.glob("*.orig.tar.*") if path.suffix != ".asc"]
            if not archives:  # else apt has checked them, whatever other file it lacks
                raise why
            scratch = out.with_name(out.name + ".new")
            shutil.unpack_archive(max(archives, key=lambda path: path.stat().st_size), scratch)
            scratch.rename(out)
        return only_folder(out)

    def _python(self, name, version, kind, suffix):
        """The folder with the unpacked archive of a Python package, of the kind that pip's option asks for."""
        out = self.folder / "src" / f"{name}-{version}"
        if not out.is_dir():
            work = self.folder / "work" / f"{name}-{version}"
            work.mkdir(parents=True, exist_ok=True)
            what = f"pip package {name} {version}"
            self._network(what)
            call(["pip", "download", "-q", "--no-deps", kind, name, f"{name}=={version}", "-d", str(work)], what)
            archives = list(work.glob(f"*{suffix}"))
            if not archives:
                raise Missing(f"{what}: no archive")
            shutil.unpack_archive(archives[0], out, "zip" if suffix == ".whl" else "gztar")
        return out

    def wheel(self, name, version):
        """The folder with the modules of a Python package that has no compiled parts."""
        return self._python(name, version, "--only-binary", ".whl")

    def sdist(self, name, version):
        """The folder with the source distribution of a Python package."""
        return only_folder(self._python(name, version, "--no-binary", ".tar.gz"))


def sources():
    """apt's lines for packages and sources of these releases, on the mirror that this system uses."""
    form = "$(CREATED_BY)|$(RELEASE)|$(COMPONENT)|$(REPO_URI)"
    targets = call(["apt-get", "indextargets", "--no-release-info", "--format", form], "apt's sources")
    own = re.search(r"^VERSION_CODENAME=(\S+)", Path("/etc/os-release").read_text(), re.M)
    own = own[1] if own else ""
    for line in targets.splitlines():
        kind, release, component, uri = line.split("|")
        if (kind, release, component) == ("Packages", own, "main"):
            break
    else:
        raise Missing(f"apt has no source for {own} main")
    key = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    signed = f"[signed-by={key}] " if key.is_file() else ""
    lines = [f"deb {signed}{uri} {own} main"]
    lines += [f"deb-src {signed}{uri} {release} main" for release in RELEASES]
    return "\n".join(lines) + "\n"


def only_folder(out):
    inside = [path for path in out.iterdir() if path.is_dir()]
    return inside[0] if len(inside) == 1 else out
