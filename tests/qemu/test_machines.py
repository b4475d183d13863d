"""make test WHAT=machines: boards, CPU models and shapes that the eleven machines of make test do not have.

Each machine is a row of boot/metal.md and runs the cases that depend on the machine. The matrix tests mm/.
"""

import fcntl
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import patience
import pytest
from acpi_fixture import dump, sum_right
from guest import Guest, run
from machine import ROOT, Machine, make_image
from machines import Machine as Described
from matrix import MODELS, MODELS_OF_QEMU_10
from screen import Shown
from verdict import END, clean

SECONDS = 180
CASES = "test=arch.*,acpi.*,boot.*,kernel.*,mm.directmap.*,mm.memblock.*,mm.vmemmap.*"


@dataclass(frozen=True)
class Row:
    name: str
    machine: Machine
    says: str = ""  # the console must show this


def cpu_row(model, **more):
    name = model.replace(",", "").replace("=", "-")
    return Row(f"cpu-{name}", Machine("pvh", 4, "1G", cpu=model, cmdline=CASES, **more))


ROWS = [
    Row("board-pc-bios", Machine("bios", 4, "1G", board="pc", cmdline=CASES)),
    Row("board-pc-pvh", Machine("pvh", 4, "1G", board="pc", cmdline=CASES)),
    Row("board-pc-uefi", Machine("uefi", 4, "1G", board="pc", cmdline=CASES)),
    Row("board-q35-bios", Machine("bios", 4, "1G", cmdline=CASES)),
    Row("board-microvm", Machine("microvm", 4, "1G", cmdline=CASES)),
    Row("board-q35-no-hpet", Machine("pvh", 2, "1G", board="q35,hpet=off", cmdline=CASES), "ACPI PM timer agrees"),
    *(cpu_row(model) for model in MODELS),
    *(cpu_row(model, qemu="10") for model in MODELS_OF_QEMU_10),
    Row("sparse-apic-ids", Machine("pvh", 12, "1G", cmdline=CASES, extra=("-smp", "12,sockets=2,cores=3,threads=2"))),
    Row("empty-cpu-slots", Machine("pvh", 2, "1G", cmdline=CASES, extra=("-smp", "2,maxcpus=16")), "14 entries disabled"),
    Row("empty-memory-slots", Machine("pvh", 2, "1G", nodes=2, cmdline=CASES, extra=("-m", "1024M,slots=4,maxmem=64G"))),
    Row("pci-serial-q35", Machine("bios", 2, "1G", cmdline=CASES, serial=(
        "-serial", "none", "-chardev", "stdio,id=c", "-device", "pcie-root-port,id=p", "-device", "pcie-pci-bridge,bus=p,id=b",
        "-device", "pci-serial,chardev=c,bus=b,addr=3")), "console: PCI UART 02:03.0"),
    Row("two-serial-cards", Machine("pvh", 2, "1G", cmdline=f"console=pci {CASES}", serial=(
        "-serial", "none", "-chardev", "stdio,id=c", "-device", "pci-serial-2x,chardev1=c"))),
]


@pytest.mark.metal
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(row, kernel):
    run(row.machine, kernel, SECONDS).ended().says(row.says)


# Bochs 2.7 takes the trap of a single step after SYSCALL although the mask of flags has cleared TF, which CPUs do not.
NOT_IN_BOCHS = "-arch.user.single_steps_end_in_ring_3"


@pytest.mark.metal
@pytest.mark.parametrize("cpus", [1, 2, 8])
@pytest.mark.parametrize("model", ["corei7_skylake_x", "ryzen"])
def test_bochs(kernel, tmp_path, model, cpus):
    """The image boots under Bochs' own BIOS, whose VGA has none of the modes that the menu asks for. The run ends in a reset, which may
    be Bochs' end, too, and no byte of the last line is lost by it."""
    make_image(Machine("bios", cpus, "1G", cmdline=f"end=reboot {CASES},{NOT_IN_BOCHS}"), kernel, tmp_path / "iso")
    settings = Path(__file__).with_name("bochsrc").read_text(encoding="ascii")
    (tmp_path / "bochsrc").write_text(settings.format(model=model, cpus=cpus), encoding="ascii")
    (tmp_path / "go").write_text("continue\nquit\n", encoding="ascii")
    console, argv = tmp_path / "console", ["bochs-bin", "-q", "-f", "bochsrc", "-rc", "go"]
    console.touch()
    with open(tmp_path / "said", "w+b") as said:
        with subprocess.Popen(argv, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=said, stderr=said) as bochs:
            patience.until(lambda: bochs.poll() is not None or console.read_bytes().count(b"ASHLAR-BEGIN") > 1, 5 * SECONDS, pause=2)
            bochs.kill()
        said.seek(0)
        assert console.stat().st_size, said.read().decode(errors="replace")
    lines = [clean(line) for line in console.read_text(encoding="utf-8", errors="replace").splitlines()]
    assert f"started {cpus} of {cpus} CPUs" in "\n".join(lines) and "ASHLAR-END verdict=pass code=0x10" in lines, "\n".join(lines[-60:])


@pytest.mark.metal
@pytest.mark.parametrize("flags, says", [
    (1, (r"CPU 2 \(APIC ID 300\) did not start", r"started 2 of 3 CPUs .*\(x2APIC\)")),
    (3, ("APIC: xAPIC mode, because firmware opts out of x2APIC", r"CPU 2 \(APIC ID 300\) is left out: its APIC ID cannot be addressed",
         r"started 2 of 3 CPUs .*\(xAPIC\)")),
], ids=["silent", "opted-out"])  # fmt: skip
def test_firmware_opts_out_of_x2apic(kernel, tmp_path, flags, says):
    """By its DMAR, although its MADT has a CPU that only x2APIC mode reaches."""
    dmar, text = sum_right(bytearray(b"DMAR" + bytes(32) + bytes((38, flags)) + bytes(10))), tmp_path / "dump.txt"
    text.write_text(dump([Described("any", [], [0, 1, 300]).acpi()[0], dmar]), encoding="ascii")
    run(Machine("pvh", 2, "128M", qemu="10", module=str(text), cmdline=f"acpi=module {CASES}"), kernel, SECONDS).ended().says(*says)


@pytest.mark.metal
def test_no_hypervisor_bit(kernel):
    """The machine behaves as on hardware: deadlines are short, no port of an emulator is touched, and the run ends in a halt."""
    machine = Machine("pvh", 2, "1G", accel="icount-5", cpu="max,hypervisor=off", cmdline=f"console.page=on {CASES}")
    with Guest(machine, kernel) as guest:
        assert guest.wait_for(END.pattern, SECONDS), "no end"
    assert "ASHLAR-END verdict=pass code=0x10" in guest.lines, "\n".join(guest.lines)


@pytest.mark.metal
@pytest.mark.parametrize("display", ["std", "ramfb", "cirrus", "vmware"])
def test_uefi_screens(kernel, display):
    """Whatever framebuffer OVMF finds, the verdict can be read from it."""
    machine = Machine("uefi", 2, "256M", display=display, serial=("-serial", "none"), cmdline="end=halt test=kernel.string.*")
    with Shown(machine, kernel) as guest:
        guest.wait_halted(SECONDS)
        lines = guest.picture().text()
    assert "ASHLAR-END verdict=pass code=0x10" in lines, "\n".join(lines)


@pytest.mark.metal
def test_a_dead_uart_is_dropped(kernel, tmp_path):
    """COM1 leads into a pipe that nobody reads. COM2 reports that COM1 was dropped, and the run passes."""
    fifo = tmp_path / "dead"
    subprocess.run(["mkfifo", str(fifo)], check=True)
    with open(fifo, "r+b", buffering=0) as pipe:  # the pipe is held open, but nobody reads it
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)  # fewer bytes than the run says
        machine = Machine("pvh", 2, "512M", cmdline=f"console=com1,com2 {CASES}", serial=(
            "-chardev", f"pipe,id=d,path={fifo}", "-serial", "chardev:d", "-serial", "stdio"))
        run(machine, kernel, SECONDS).ended().says("a device stopped taking bytes and was dropped")


@pytest.mark.metal
def test_a_map_of_hundreds_of_entries(kernel, tmp_path):
    """GRUB cuts 300 scattered pages out of RAM, which gives a memory map of 600 entries. Around the cuts pages are mapped singly, and the
    cuts are no RAM."""
    cuts = "\n".join(f"\tcutmem {0x4000000 + n * 0x21000:#x} {0x4000000 + n * 0x21000 + 0x1000:#x}" for n in range(300))
    tree = tmp_path / "tree/boot/grub"
    tree.mkdir(parents=True)
    shutil.copy(kernel, tree.parent / "ashlar.elf")
    (tree / "grub.cfg").write_text(
        f"set timeout=0\ninsmod mmap\nmenuentry a {{\n{cuts}\n\tmultiboot2 /boot/ashlar.elf {CASES} bench=machine\n\tboot\n}}\n", encoding="ascii"
    )
    iso = tmp_path / "ashlar.iso"
    subprocess.run(["grub-mkrescue", "-o", str(iso), str(tmp_path / "tree")], check=True, capture_output=True)
    outcome = run(Machine("bios", 2, "512M", image=str(iso)), kernel, SECONDS).ended()
    pages = int(re.search(r"pages +(\d+) of 4K = free", outcome.text)[1])
    assert 130000 < pages < 131072 - 300, outcome.report()
