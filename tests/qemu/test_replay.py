"""Machines that were never at hand: the hosted kernel boots as each of them and is judged by the cases that ask the machine itself."""

import re
from functools import reduce

import collect
import patience
import pytest
from acpi_fixture import dump
from guest import run
from hosted import boot as boot_hosted
from machine import ROOT, Machine
from machines import MACHINES, Machine as Described
from records import values_of
from test_payloads import spelled

CASES = "mm.machine.*"


NAMED = {machine.name: machine for machine in MACHINES}


def boot(build, text, folder, words, cpus=4):
    (folder / "machine.txt").write_text(text)
    return boot_hosted(build, words, cpus=cpus, more=("-r", str(folder / "machine.txt")))


def passed(build, text, folder):
    """What the cases printed on the machine of a text, which they pass."""
    done = boot(build, text, folder, f"test={CASES}")
    assert done.returncode == 0 and "verdict=pass" in done.stdout, done.stdout[-3000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_machine(machine, build, tmp_path):
    text = passed(build, machine.text(), tmp_path)
    assert int(re.search(r"^# totals pass:(\d+) fail:0 skip:0", text, re.M)[1]) >= 6
    described = machine.expect_cpus or len(machine.cpus)
    assert f"{described} CPUs described" in text
    (record,) = values_of(text, "boot")
    assert record["nodes"] == machine.expect_nodes
    if machine.name not in ("overlaps", "quilt"):  # whose ranges are no sum
        assert abs(record["ram_bytes"] - machine.ram) < 1 << 20
    cpus = re.search(r"^  cpus +(\d+) found, (\d+) started", text, re.M)
    assert cpus[1] == cpus[2] == str(min(described, 4))


def test_the_boot_cpu_is_number_0_wherever_it_is_listed(build, tmp_path):
    done = boot(build, NAMED["boot-cpu-in-the-middle"].text(), tmp_path, "run=cpus")
    ids = re.findall(r"^ +(\d+) .* (\d+)$", done.stdout, re.M)
    assert ("0", "4") in ids and ("1", "0") in ids, done.stdout


@pytest.mark.parametrize(("name", "ids"), [
    ("laptop", [0, 2, 4, 6, 8, 10, 12, 14]),
    ("hybrid-laptop", [16, 0, 8, 18, 20, 22, 1, 9]),
    ("two-sockets", [0, 128, 2, 130, 4, 132, 6, 134]),
])  # fmt: skip
def test_the_first_eight_cpus_are_cores_of_all_nodes(name, ids, build, tmp_path):
    done = boot(build, NAMED[name].text(), tmp_path, "run=cpus", cpus=8)
    rows = re.findall(r"^ +(\d+) +\d+ (?:this one|idle|busy) .* (\d+)$", done.stdout, re.M)
    assert [int(apic) for _, apic in rows] == ids, done.stdout


@pytest.mark.parametrize(("text", "says"), [
    ("", "has no line that describes memory"),
    ("BIOS-e820: [mem 0x0-0x9ffff] usable\nBIOS-e820: [mem 0x100000-0xffffffffffff] usable\n", "has RAM up to 0x1000000000000"),
    ("BIOS-e820: [mem 0x0000000000000000-0x000000000009fbff] reserved\n", "describes no usable RAM"),
    ("BIOS-e820: [mem 0x100000-0xffffffffffffffff] usable\n", "has RAM up to 0xffffffffffffffff"),
], ids=["nothing", "too-far", "no-ram", "to-the-last-byte"])  # fmt: skip
def test_a_text_that_is_no_machine(text, says, build, tmp_path):
    done = boot(build, text, tmp_path, "run=machine")
    assert done.returncode != 0 and says in done.stdout + done.stderr, done.stdout + done.stderr


def test_a_damaged_table_is_named(build, tmp_path):
    before, srat, after = NAMED["two-sockets"].text().partition("SRAT @")
    text = passed(build, before + srat + after.replace("    0020:", "    0020: 77", 1), tmp_path)
    assert "SRAT is damaged and not used" in text and " nodes=1 " in text, text[-3000:]


def test_a_machine_that_was_collected_is_the_machine(build, tmp_path, monkeypatch, capsys):
    """The map is read as Linux shows it. A tool that is not there is named."""
    machine = NAMED["two-sockets"]
    for number, (start, end, kind) in enumerate(machine.ranges):
        entry = tmp_path / f"sys/firmware/memmap/{number}"
        entry.mkdir(parents=True)
        for name, value in (("start", hex(start)), ("end", hex(end - 1)), ("type", "System RAM" if kind == "usable" else "Reserved")):
            (entry / name).write_text(value + "\n")
    assert collect.output_of("no-such-acpidump") == "" and "acpica-tools" in capsys.readouterr().err
    monkeypatch.setattr(collect, "output_of", lambda tool, *words: dump(machine.acpi()) if tool == "acpidump" else "")
    text = passed(build, collect.describe(tmp_path), tmp_path)
    assert "256 CPUs described" in text and " nodes=2 " in text, text[-3000:]


@pytest.mark.parametrize("memory, ram", [("smap", 0x3FF00000 + 0x9F000), ("efi_map", 0x3FF00000 + 0xA0000)], ids=["smap", "efi_map"])
@pytest.mark.parametrize("form", ["binary", "one-file", "windows"])
def test_dumps_of_other_systems_are_read(memory, ram, form, build, tmp_path):
    """FreeBSD's maps of memory. Tables as files of bytes, one or many, and as acpidump's text from Windows' shell, in UTF-16."""
    tables = Described("any", [], list(range(6))).acpi() + Described("any", [], [0], nodes=[(0, 1 << 32, 7)]).acpi()[1:]
    files = [tmp_path / f"{form}{n}" for n in range(3)]
    files[0].write_bytes((ROOT / f"tests/replay/freebsd-{memory}").read_bytes())
    files[1].write_bytes(tables[0] if form == "binary" else b"".join(tables) if form == "one-file" else dump(tables).encode("utf-16"))
    files[2].write_bytes(tables[1])
    out = tmp_path / "machine"
    assert collect.collect(out, files if form == "binary" else files[:2]) == 0
    text = passed(build, out.read_text(), tmp_path)
    assert "6 CPUs described" in text and values_of(text, "boot")[0]["ram_bytes"] == ram, text[-3000:]


@pytest.mark.parametrize("text, says", [
    ("/*\n  APIC: Length=120, Revision=3, Checksum=237,\n", "FreeBSD's `acpidump -t` decoded"),
    ("[000h 0000   4]  Signature : \"APIC\"\n", "iasl decoded"),
    ("RW-Everything\n", "RWEverything's text"),
    ("APIC" + "x" * 40, "has neither ACPI tables nor a line"),
    ("", "has neither ACPI tables nor a line"),
    (dump([Described("any", []).acpi()[0]]), "none of these files has a map of memory"),
    (None, "No such file"),
])  # fmt: skip
def test_what_cannot_be_read_is_refused_by_name(text, says, tmp_path, capsys):
    path = tmp_path / "dump"
    if text is not None:
        path.write_text(text)
    assert collect.collect(tmp_path / "machine", [path]) == 1 and not (tmp_path / "machine").exists()
    assert says in capsys.readouterr().err


def test_a_folder_of_machines(build, tmp_path):
    for machine in MACHINES[:3]:
        (tmp_path / machine.name).write_text(machine.text())
    (tmp_path / "nonsense").write_text("no machine\n")
    argv = ["make", "test", "WHAT=replay", f"FILES={tmp_path}", spelled(build)]
    done = patience.run(argv, 120, cwd=ROOT)
    assert done.returncode == 2 and "3 machines passed, 1 failed" in done.stdout, done.stdout
    assert re.search(r"^not ok nonsense: .*has no line that describes memory$", done.stdout, re.M), done.stdout


def damaged(text, how):
    """A console with one line of the machine's text changed, lost or cut off, and a line that the message must name."""
    lines = text.split("\n")
    (at,) = (n for n, line in enumerate(lines) if re.search(r"0020: .*  ~", line) and "APIC @" in lines[n - 3])
    if how == "changed":
        lines[at] = lines[at].replace(" 00 ", " 01 ", 1)
    elif how == "lost":
        del lines[at]
    else:
        del lines[at:]
    return "\n".join(lines), at + 1


@pytest.fixture(scope="module", params=["pvh", "uefi"])
def console(request, kernel):
    return run(Machine(request.param, 4, "1G", nodes=2, cmdline='run="machine; machine text"'), kernel).ended().text


def test_a_machine_prints_itself(console):
    """Each line has its sum, which its number begins. The attributes of UEFI's map are among them."""
    lines = re.findall(r"^(.*)  ~([0-9a-f]{4})$", console, re.M)
    sums = [f"{reduce(lambda so_far, byte: (so_far * 31 + byte) & 0xFFFF, line.encode(), n):04x}" for n, (line, _) in enumerate(lines)]
    assert len(lines) > 50 and sums == [said for _, said in lines] and lines[-1][0] == "end of the machine", console
    if "firmware=uefi" in console:
        assert re.search(r"^efi: mem\d+: \[Conventional Memory\|.*WB\|.*\] range=", console, re.M), console


def test_a_machine_is_booted_from_its_console(console, build, tmp_path):
    """With its map, its CPUs and its nodes. What a serial line does to the text is named."""
    said = passed(build, console, tmp_path)
    assert "4 CPUs described" in said, said[-3000:]
    there, here = (values_of(text, "boot")[0] for text in (console, said))
    assert here["nodes"] == there["nodes"] == 2 and abs(here["ram_bytes"] - there["ram_bytes"]) < 1 << 20, (here, there)
    for how in ("changed", "lost", "cut"):
        text, at = damaged(console, how)
        done = boot(build, text, tmp_path, f"test={CASES}")
        assert done.returncode and f"line {at}: the machine's text was damaged on its way" in done.stdout + done.stderr, (how, done)
