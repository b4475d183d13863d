"""Fetches sources and programs of others for run.py, by Debian's own tools and by pip. Nothing is installed or committed.

Everything is kept in one folder and is fetched once.
"""

import os
import shutil
import subprocess
from pathlib import Path

APT = Path(__file__).resolve().parents[1] / "setup/apt.sh"
RELEASES = "own source:bookworm source:trixie"
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

    def _apt(self, *words, what, cwd):
        cwd.mkdir(parents=True, exist_ok=True)
        return call([str(APT), str(self.folder / "apt"), RELEASES, "apt-get", *words], what, cwd=cwd)

    def package(self, name):
        out = self.folder / "deb" / name
        if not out.is_dir():
            work = self.folder / "work"
            self._apt("download", name, what=f"package {name}", cwd=work)
            for deb in work.glob(f"{name}_*.deb"):
                out.parent.mkdir(parents=True, exist_ok=True)
                call(["dpkg", "-x", str(deb), str(out)], f"package {name}")
                deb.unlink()
        return out

    def source(self, name, release="bookworm"):
        """The folder with the original source of a Debian source package, without Debian's changes."""
        out = self.folder / "src" / name
        if not out.is_dir():
            work, what = self.folder / "work" / name, f"source package {name}"
            why = Missing(f"{what}: no archive")
            try:
                self._apt("source", "--download-only", f"{name}/{release}", what=what, cwd=work)
            except Missing as reason:
                why = reason
            archives = [path for path in work.glob("*.orig.tar.*") if path.suffix != ".asc"]
            if not archives:  # else apt has checked them, whatever other file it lacks
                raise why
            scratch = out.with_name(out.name + ".new")
            shutil.unpack_archive(max(archives, key=lambda path: path.stat().st_size), scratch)
            scratch.rename(out)
        return only_folder(out)

    def _python(self, name, version, kind, suffix, minor=None):
        """The folder with the unpacked archive of a Python package, of the kind that pip's option asks for."""
        full = f"{name}-{version}" + (f"-3.{minor}" if minor else "")
        out = self.folder / "src" / full
        if not out.is_dir():
            work = self.folder / "work" / full
            work.mkdir(parents=True, exist_ok=True)
            what = f"pip package {name} {version}"
            if os.environ.get("ASHLAR_OFFLINE"):
                raise Missing(f"{what}: no network (ASHLAR_OFFLINE is set)")
            for_python = ("--python-version", f"3.{minor}") if minor else ()
            call(["pip", "download", "-q", "--no-deps", *for_python, kind, name, f"{name}=={version}", "-d", str(work)], what)
            archives = list(work.glob(f"*{suffix}"))
            if not archives:
                raise Missing(f"{what}: no archive")
            shutil.unpack_archive(archives[0], out, "zip" if suffix == ".whl" else "gztar")
        return out

    def wheel(self, name, version, minor=None):
        """`minor`: for that version of Python 3, instead of pip's own."""
        return self._python(name, version, "--only-binary", ".whl", minor)

    def sdist(self, name, version):
        return only_folder(self._python(name, version, "--no-binary", ".tar.gz"))


def only_folder(out):
    inside = [path for path in out.iterdir() if path.is_dir()]
    return inside[0] if len(inside) == 1 else out
