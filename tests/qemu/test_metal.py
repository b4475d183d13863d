"""The consoles of real machines: any subset must do, also no console at all."""

import os
import re
import socket
import struct
import subprocess
import sys
import time

import patience
import pytest
import qr
from acpi_fixture import compile_table, dump, sum_right
from guest import Guest, Session, run
from machine import ROOT, Machine, make_image
from matrix import BY_INSTRUCTIONS
from screen import FONTS, Shown

SECONDS = 90
WORDS = "test=kernel.string.*"
STDIO = ("-serial", "none", "-chardev", "stdio,id=c")


ON_SCREEN = {"display": "std", "serial": ("-serial", "none")}


def com(port, number, irq=3):
    return (*STDIO, "-device", f"isa-serial,chardev=c,iobase={port},index={number},irq={irq}")


@pytest.mark.parametrize("firmware, mem", [("bios", "5G"), pytest.param("uefi", "256M", marks=pytest.mark.proof)])
def test_framebuffer_is_read_glyph_by_glyph(kernel, firmware, mem):
    """Without a serial port, all output is on the screen, down to the verdict. The first machine has memory beyond the reach of the boot
    tables."""
    with Shown(Machine(firmware, 2, mem, cmdline=f"end=halt {WORDS}", **ON_SCREEN), kernel) as guest:
        guest.wait_halted(SECONDS)
        lines = guest.picture().text()
    assert "ASHLAR-END verdict=pass code=0x10" in lines and "ok 1 kernel.string" in lines, "\n".join(lines)
    assert not any("\0" in line for line in lines), "something on the screen is no glyph:\n" + "\n".join(lines)


PAGED = "# keys page through the log: Space, b, Enter, k, g, G"


def test_the_tables_of_make_run_stay_on_the_screen(kernel):
    """The records do not push them off, and a line says how to read them."""
    with Shown(Machine("bios", 2, "1G", cmdline='end=page bench="hvo pages=64"', **ON_SCREEN), kernel) as guest:
        lines = guest.wait("ASHLAR-END", SECONDS, lambda: guest.picture().text())
    rows = [line.split()[:2] for line in lines]
    assert ["mode", "op"] in rows and ["on", "shrink"] in rows and ["mode", "open"] in rows and PAGED in lines, "\n".join(lines)


def test_vga_text_shows_the_last_lines_and_is_paged_with_the_keyboard(kernel):
    """The verdict stays on the screen until a key is pressed. Then the first page has the first line, and the last page has the verdict
    again."""
    with Shown(Machine("pvh", 1, "5G", cmdline=f"end=page {WORDS}", **ON_SCREEN), kernel) as guest:
        lines = guest.wait("ASHLAR-END", SECONDS, guest.vga_text)
        assert {"ASHLAR-END verdict=pass code=0x10", "ok 1 kernel.string", PAGED} <= set(lines), "\n".join(lines)
        guest.press("home")
        lines = guest.wait("q leaves", SECONDS, guest.vga_text)
        assert lines[0] == "ASHLAR-BEGIN" and not any("ASHLAR-END" in line for line in lines), "\n".join(lines)
        guest.press("down")  # one row, although the key is held for a while
        guest.wait("-- 2 to ", SECONDS / 4, guest.vga_text)
        time.sleep(0.2)
        assert guest.vga_text()[0] == lines[1], "\n".join(guest.vga_text())
        guest.press("end")
        lines = guest.wait("ASHLAR-END", SECONDS, guest.vga_text)
        assert "ASHLAR-BEGIN" not in lines and "q leaves" in lines[-1], "\n".join(lines)


def test_results_leave_a_machine_that_has_only_a_screen(kernel, tmp_path):
    """QR codes of the screen give the lines of the console. Pages follow, and a serial port keeps the verdict as its last line."""
    log, pictures, codes = tmp_path / "serial", tmp_path / "pictures", []
    pictures.mkdir()
    words = "end=cycle end.cycle=1 console.page=on test=kernel.string.*,kernel.words.*,kernel.line.*"
    machine = Machine("bios", 2, "1G", display="std", serial=("-serial", f"file:{log}"), cmdline=words)
    with Shown(machine, kernel) as guest:

        def text():
            picture = pictures / f"{len(codes)}.ppm"
            guest.ask("screendump", filename=str(picture))
            codes.append(qr.code_of(picture))
            try:
                return qr.join(codes).decode().splitlines()
            except qr.Unreadable:
                return []

        lines = guest.wait("ASHLAR-END", SECONDS, text)
        guest.wait("ASHLAR-BEGIN", SECONDS, lambda: guest.picture().text())
    serial = log.read_text(encoding="utf-8", errors="replace").splitlines()
    assert {"ok 1 kernel.line", "This machine", "ASHLAR-END verdict=pass code=0x10"} <= set(lines) <= set(serial), lines
    assert len(set(codes)) > 2 and serial[-1].startswith("ASHLAR-END"), serial[-3:]
    done = patience.run([sys.executable, str(ROOT / "tests/run"), "--console", str(pictures)], SECONDS)
    assert done.returncode == 0 and "3 passed, 0 failed" in done.stdout, done.stdout + done.stderr


def test_nothing_is_said_on_a_machine_that_hides_its_emulator(kernel):
    """The watchdog's tick has a reason each time. QEMU's INIT clears MTRRs, so CPU 1 gets those of CPU 0."""
    machine = Machine("pvh", 2, "256M", accel="icount", cpu="max,-hypervisor", cmdline=f"end=page {WORDS}")
    with Guest(machine, kernel) as guest:
        assert guest.wait_for("^ASHLAR-END verdict=pass", SECONDS), guest.lines[-40:]
        text = "\n".join(guest.lines)
        assert "NMI" not in text and "other memory types" not in text, text
        assert "1 CPUs had no memory types (MTRRs off) and got those of CPU 0" in text, text


@pytest.mark.parametrize("serial, names", [
    ((*STDIO, "-device", "pci-serial,chardev=c"), ["ASHLAR-BEGIN", "console: PCI UART 00:0", "console: PCI"]),
    (com("0x2f8", 1), ["console: COM2"]),
    (com("0x2e8", 3), ["console: COM4"]),
], ids=["pci", "COM2", "COM4"])  # fmt: skip
def test_another_port_only(kernel, serial, names):
    run(Machine("pvh", 1, "128M", serial=serial, cmdline=WORDS), kernel).ended().says(*names)


CARD = ("-chardev", "null,id=card", "-device", "pci-serial,chardev=card")


def test_every_port_that_answers_has_the_log(kernel, tmp_path):
    """Nobody knows in which of them the cable is. A card is used only if there is no such port, or if it is wished."""
    extra = ("-chardev", f"file,id=f,path={tmp_path}/com2", "-device", "isa-serial,chardev=f,iobase=0x2f8,index=1,irq=3")
    machine = Machine("pvh", 1, "128M", serial=com("0x3f8", 0, 4) + extra + CARD, cmdline=WORDS)
    outcome = run(machine, kernel).ended().says("console: COM1", "console: COM2")
    assert "console: PCI" not in outcome.text, outcome.report()
    other = (tmp_path / "com2").read_text(encoding="utf-8")
    assert "ASHLAR-BEGIN" in other and "ASHLAR-END verdict=pass" in other, other


@pytest.mark.parametrize("serial, word", [(("-serial", "none"), ""), ((), "console=com1,none,auto ")], ids=["no-port", "none"])
def test_no_console_at_all(kernel, serial, word):
    outcome = run(Machine("pvh", 2, "128M", serial=serial, cmdline=word + WORDS), kernel)
    assert outcome.status == 33 and "ASHLAR" not in outcome.text, outcome.report()


def test_a_console_that_is_wished_twice_is_there_once(kernel):
    machine = Machine("pvh", 1, "128M", display="std", extra=CARD, cmdline=f"console=com1,screen,kbd,kbd,pci,auto,com1 {WORDS}")
    outcome = run(machine, kernel).ended().says("console: PCI")
    assert outcome.text.count("ASHLAR-END") == 1 and "does not answer" not in outcome.text, outcome.report()


def test_a_console_that_is_not_there_is_named(kernel):
    """There is no console either at an address that no CPU can reach."""
    wanted = "com1,com3,mmio:0xfe000000,mmio:0x8000000000000,spcr,screen"
    missing = ("COM3 does not answer at 3e8", "at fe000000", "at 8000000000000", "has no UART of SPCR", "has no screen")
    run(Machine("pvh", 1, "128M", cmdline=f"console={wanted} {WORDS}"), kernel).ended().says(*missing)


SHIFTED = {"=": "equal", ".": "dot", "*": ("shift", "8"), " ": "spc", "\n": "ret"}
SAFE_MODE = "Safe mode"
MENU = {  # each entry of boot/grub.cfg without a program, in order: what is typed at it, and a line that only it brings to the screen
    "Ashlar: resize": ("", "ASHLAR-END verdict=pass code=0x10"),
    "All kernel tests": ("", "# Subtest: "),
    "Benchmarks: memmap, hvo": ("", "BENCH memmap "),
    "Monitor": ("", "Commands: help."),
    SAFE_MODE: ("", "# Subtest: "),
    "Type a command line": ("end=halt test=kernel.string.*\n", "ASHLAR-END verdict=pass code=0x10"),
    "Restart the machine": ("", ""),
}


@pytest.fixture(scope="module")
def menu(kernel, tmp_path_factory):
    return str(make_image(Machine(strict=False), kernel, tmp_path_factory.mktemp("menu") / "ashlar.iso", menu_seconds=60))


@pytest.mark.parametrize("display", ["none", pytest.param("std", marks=pytest.mark.proof)])
def test_the_menu_appears_once_on_a_serial_line(kernel, tmp_path, display):
    """OVMF sends its console to the same port."""
    image = make_image(Machine(strict=False, cmdline=WORDS), kernel, tmp_path / "ashlar.iso", menu_seconds=1)
    outcome = run(Machine("uefi", 1, "256M", image=str(image), display=display), kernel).ended()
    assert outcome.text.count("GNU GRUB") == 1, outcome.text


def choose_entry(kernel, menu, tmp_path, firmware, entry, seconds=SECONDS):
    """Choose an entry with the keyboard. The kernel's own output is then read from the screen, glyph by glyph; under BIOS, safe mode stays
    in text mode."""
    titles = re.findall(r'^menuentry "([^"]*)"', (ROOT / "boot/grub.cfg").read_text(encoding="utf-8"), re.M)
    assert len(titles) == len(MENU) and titles[list(MENU).index(entry)].startswith(entry.split(":")[0]), titles
    typed, line = MENU[entry]
    log = tmp_path / "serial"
    # A run that ends leaves the screen as it is where the kernel sees no emulator whose port it could use.
    cpu = "max,-hypervisor" if "END" in line else "max"
    machine = Machine(firmware, 2, "1G", cpu=cpu, display="std", image=menu, serial=("-serial", f"file:{log}"), reboots=True)

    def press(*names):
        guest.press(*names)
        time.sleep(0.15)  # the keyboard holds a key for 100 ms

    def wait_menu(count):
        deadline = patience.now() + SECONDS
        while not log.exists() or len(re.findall("Use the .* keys", log.read_text(errors="replace"))) < count:
            assert patience.now() < deadline, f"menu {count} never appeared"
            time.sleep(0.1)

    with Shown(machine, kernel) as guest:
        wait_menu(1)
        for _ in range(list(MENU).index(entry)):
            press("down")
        press("ret")
        if not line:
            wait_menu(2)
            return
        if typed:
            time.sleep(2)  # GRUB reads the kernel before it asks
        for letter in typed:
            name = SHIFTED.get(letter, letter)
            press(*(name if isinstance(name, tuple) else (name,)))
        text_mode = firmware == "bios" and entry == SAFE_MODE
        guest.wait(line, seconds, guest.vga_text if text_mode else lambda: guest.picture().text())


ENTRIES = [(firmware, entry) for entry in MENU if entry != SAFE_MODE for firmware in ("bios", "uefi")]
OFTEN = (("uefi", "Ashlar: resize"), ("bios", "Monitor"))


@pytest.mark.parametrize("firmware, entry", [row if row in OFTEN else pytest.param(*row, marks=pytest.mark.proof) for row in ENTRIES])
def test_each_entry_of_the_menu_shows_its_run_on_the_screen(kernel, menu, tmp_path, firmware, entry):
    choose_entry(kernel, menu, tmp_path, firmware, entry)


@pytest.mark.parametrize("firmware", ["bios", pytest.param("uefi", marks=pytest.mark.proof)])
def test_safe_mode_shows_its_run_on_the_screen(kernel, menu, tmp_path, firmware):
    choose_entry(kernel, menu, tmp_path, firmware, SAFE_MODE, SECONDS / 4)


@pytest.mark.parametrize("firmware", ["bios", "uefi", pytest.param("pvh", marks=pytest.mark.proof)])
def test_a_cpu_that_cannot_is_told_on_the_screen(kernel, firmware):
    """Before there is any driver. On a desktop the screen is all there is. An Intel CPU is asked first whether firmware hid NX."""
    with Shown(Machine(firmware, 1, "512M", cpu="Nehalem,nx=off", exit_port=False, **ON_SCREEN), kernel) as guest:
        look = guest.vga_text if firmware == "pvh" else lambda: guest.picture().text(FONTS[1:])
        lines = guest.wait("this CPU lacks NX, or firmware set-up switches NX off. Halted.", SECONDS / 4, look)
        assert lines[0].startswith("Ashlar: this CPU"), "\n".join(lines)


STICK = {"LOG-SEC": "512", "TYPE": "disk", "RM": "1", "RO": "0", "TRAN": "usb", "SIZE": "64000000", "MODEL": "Cruzer", "VENDOR": "SanDisk"}


@pytest.fixture
def usb(tmp_path):
    """Run mkusb.sh on a system with simulated disks: (exit status, output, bytes written to the stick)."""

    def write(answer, stick=None, parts="disk\npart", mounts="", disks="", **changes):
        disk = STICK | changes
        cases = "".join(f'    *" -bdno {key} "*) echo "{value}" ;;\n' for key, value in disk.items())
        tools = {
            "lsblk": f'case " $* " in\n{cases}    *" -no MOUNTPOINTS "*) printf "{mounts}\\n" ;;\n'
            f'    *" -no TYPE "*) printf "{parts}\\n" ;;\n    *" -sno NAME "*) printf "sda2\\n└─sda\\n" ;;\n'
            f'    *" -drno "*) echo "{disks}" ;;\nesac\n',
            "findmnt": "echo none\n",
        }
        for name, text in tools.items():
            (tmp_path / name).write_text("#!/bin/sh\n" + text, encoding="utf-8")
            (tmp_path / name).chmod(0o755)
        image, device = tmp_path / "image", tmp_path / "stick"
        image.write_bytes(b"image" * 1000)
        device.write_bytes(b"\0" * 8000)
        done = subprocess.run(
            [str(ROOT / "boot/mkusb.sh"), str(image), str(device) if stick is None else stick],
            input=(answer or str(device)) + "\n", env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr, device.read_bytes() if device.exists() else b""

    return write


def test_usb_writes_a_stick_after_its_name_was_typed(usb):
    status, text, written = usb("")
    assert status == 0 and written.startswith(b"image" * 1000), text
    assert "SanDisk Cruzer" in text and "64 MB" in text and "Secure Boot" in text


@pytest.mark.parametrize("changes, words", [
    ({"TYPE": "part"}, "whole disk"),
    ({"TYPE": ""}, "no disk"),
    ({"RM": "0", "TRAN": "nvme"}, "neither removable nor on USB"),
    ({"RO": "1"}, "write-protected"),
    ({"mounts": "/media/me"}, "in use: /media/me"),
    ({"mounts": "[SWAP]"}, "in use"),
    ({"parts": "disk\\ncrypt"}, "part of something else"),
    ({"SIZE": "100"}, "has 100 bytes"),
    ({"LOG-SEC": "4096"}, "has sectors of 4096 bytes"),
    ({"answer": "yes"}, "nothing was written"),
    ({"stick": "/dev/sda"}, "holds the running system"),
])  # fmt: skip
def test_usb_refuses(usb, changes, words):
    status, text, written = usb(**({"answer": ""} | changes))
    assert status == 1 and words in text and not written.strip(b"\0"), text


DISKS = """\
zram0 disk 0 4G  zram
sda disk 0 238G sata Some\\x20SSD
sr0 rom 1 1024M sata DVD
loop0 loop 0 64M  loop
sdc disk 1 0B usb Card\\x20Reader"""  # which has no card


@pytest.mark.parametrize("stick", ["", "sdb disk 0 14G usb Cruzer"])
def test_usb_without_a_name_lists_the_disks(usb, stick):
    status, text, _ = usb("", stick="", disks=f"{DISKS}\n{stick}")
    assert status == 1 and re.search(r"^ +/dev/sda +238G +sata +Some SSD +holds the running system$", text, re.M), text
    assert re.findall(r"/dev/\w+(?= +\d)", text) == ["/dev/sda"] + ["/dev/sdb"] * bool(stick), text
    assert ("None of these is a USB stick" in text) == (not stick), text


@pytest.fixture
def with_tables(tmp_path):
    """A machine whose kernel takes these ACPI tables instead of the firmware's."""

    def machine(tables, words, cpus=1, firmware="pvh", **more):
        text = tmp_path / "dump.txt"
        text.write_text(dump(tables), encoding="ascii")
        return Machine(firmware, cpus, "512M", module=str(text), cmdline=f"acpi=module {words}", **more)

    return machine


def table(name, size, fields):
    """An ACPI table of this size with {place: bytes}."""
    data = bytearray(name + bytes(size - len(name)))
    for place, value in fields.items():
        data[place : place + len(value)] = value
    return sum_right(data)


S5 = b"\x08_S5_\x12\x06\x04\0\0\0\0"


def test_another_machines_tables(kernel, with_tables, tmp_path):
    tables = [compile_table(name, tmp_path) for name in ("odd-madt", "sparse-srat", "com2-spcr")]
    run(with_tables(tables, f"console=spcr {WORDS}", cpus=2, serial=com("0x2f8", 1)), kernel).ended().says(
        "replayed from a module with 3 tables", r"MADT lists 3 CPUs to start \(3 entries disabled, 3 ignored\)",
        "console: SPCR", "SRAT describes 2 nodes", "2 nodes",
        r"CPU 2 \(APIC ID 6\) did not start: it was never heard from", "started 2 of 3 CPUs",
    )  # fmt: skip


def test_damaged_tables(kernel, with_tables, tmp_path):
    """An entry of length zero ends the MADT and nothing else. A node table with a wrong checksum is not believed."""
    madt, srat = compile_table("odd-madt", tmp_path), compile_table("sparse-srat", tmp_path)
    madt[44 + 2 * 8 + 1] = 0  # the third CPU's length
    srat[9] ^= 0x55
    says = ("MADT lists 2 CPUs to start", "SRAT has a bad checksum", "SRAT is not used", "started 2 of 2 CPUs", "1 node")
    run(with_tables([sum_right(madt), srat], WORDS, cpus=2), kernel).ended().says(*says)
    spcr = compile_table("com2-spcr", tmp_path)
    spcr[36] = 0x13
    says = ("no MADT", "started 1 of 1 CPUs", "SPCR names a UART of type 19, which is not driven here")
    run(with_tables([b"APIC" + bytes(3), sum_right(spcr)], WORDS, cpus=2), kernel).ended().says(*says)


@pytest.fixture
def by_mcfg(with_tables):
    """A machine without PCI's ports whose tables name the memory from `base` on, at the second entry."""

    def machine(base, words, **more):
        entries = struct.pack("<8xQHBBxxxxQHBBxxxx", 0x12345000, 1, 0, 9, base, 0, 0, 255)
        return with_tables([table(b"MCFG", 36 + len(entries), {36: entries})], words, firmware="microvm", board="microvm,pcie=on", **more)

    return machine


def test_pci_without_ports_is_read_in_memory(kernel, by_mcfg):
    """microvm has no such ports, and its tables do not name the memory."""
    run(by_mcfg(0xE0000000, "test=arch.pci.*"), kernel).ended().says("ok 1 memory_says_what_the_ports_say$")


@pytest.mark.parametrize("base", [0x2000000, 0xE0000123, 0xFFFFFFFFFFF00000], ids=["RAM", "between", "above"])
def test_pci_in_memory_that_cannot_be_is_said_once(kernel, by_mcfg, base):
    outcome = run(by_mcfg(base, f"end.strict=off {WORDS}"), kernel).ended().says(f"MCFG names memory at {base:x} .*not used")
    assert "is refused" not in outcome.text, outcome.report()


def test_devices_without_ports_are_stopped_once_mcfg_is_read(kernel, by_mcfg, tmp_path):
    """Nobody has set up the card of this microvm, so it is let loose by hand before the first instruction."""
    port = tmp_path / "qtest"
    machine = by_mcfg(0xE0000000, WORDS, extra=("-S", "-device", "e1000,addr=5", "-qtest", f"unix:{port},server=on,wait=off"))
    with Shown(machine, kernel) as guest, socket.socket(socket.AF_UNIX) as qtest:
        guest.ask("query-status")
        qtest.connect(str(port))
        qtest.sendall(b"writew 0xe0028004 4\n")
        assert qtest.recv(80).startswith(b"OK")
        guest.ask("cont")
        assert guest.wait_for("PCI: devices that firmware left at work may no longer write to memory: 1$", SECONDS), "\n".join(guest.lines)
        assert guest.wait_for("ASHLAR-END verdict=pass", SECONDS), "\n".join(guest.lines)


@pytest.mark.parametrize("firmware", ["bios", pytest.param("uefi", marks=pytest.mark.proof)])
def test_devices_that_firmware_left_at_work_are_stopped(kernel, firmware):
    says = (r"PCI: devices that firmware left at work may no longer write to memory: [1-9]", r"watchdog \(TCO\) was not halted and is now")
    run(Machine(firmware, 1, "256M", cmdline="test=arch.leftovers.*"), kernel).ended().says(*says)


def test_a_chipset_without_that_watchdog_is_left_alone(kernel):
    outcome = run(Machine("pvh", 1, "128M", board="pc", cmdline="test=arch.leftovers.*"), kernel).ended()
    assert "(TCO)" not in outcome.says("the_chipsets_watchdog_is_halted # SKIP the chipset has no TCO").text, outcome.report()


@pytest.mark.parametrize("machine, says", [
    (Machine("pvh", 1, "128M", accel="icount-5", cmdline=WORDS), r"TSC at (99|100)\d{4} kHz, by the PIT"),
    (Machine("microvm", 1, "128M", board="microvm,pit=off", cmdline=WORDS), "no HPET or PM timer either; 1 GHz stays assumed"),
], ids=["PIT", "nothing"])  # fmt: skip
def test_what_measures_the_tsc(kernel, machine, says):
    """Nothing else tells its rate, which is 1 GHz where QEMU counts instructions."""
    run(machine, kernel).ended().says(says)


def test_a_hang_is_ended_and_says_where(kernel):
    """The boot CPU waits softly for another CPU and says so again and again, which does not count as progress."""
    outcome = run(Machine("pvh", 3, "256M", cmdline="payload=patient end.hang=2"), kernel).ended("crash")
    outcome.says("still waiting for work on another CPU from CPU 1", "the run hangs", r"CPU 1 at   [0-9a-f]{16}  hang_with_interrupts_off")


@pytest.mark.parametrize("board", ["q35", "pc", "microvm"])
def test_a_hang_is_ended_by_the_rtc(kernel, board):
    firmware = "microvm" if board == "microvm" else "pvh"
    outcome = run(Machine(firmware, 2, "256M", board=board, cmdline="payload=hang end.hang=2"), kernel).ended("crash")
    assert "watches by its timer" not in outcome.says("the run hangs").text, outcome.report()


@pytest.mark.parametrize("cpus, words", [(1, ""), (3, "payload=hang")])
def test_without_an_rtc_the_last_cpu_watches(kernel, cpus, words):
    """It says so, and ends a run that hangs on the boot CPU."""
    machine = Machine("microvm", cpus, "128M", board="microvm,rtc=off", cmdline=f"end.hang=2 {words or WORDS}")
    outcome = run(machine, kernel, 20).ended("crash" if words else "pass")
    outcome.says(f"watchdog: CPU {cpus - 1} watches by its timer", *["the run hangs", "CPU 0 at  "] * bool(words))


@pytest.mark.parametrize("rtc", ["on", "off"])
def test_other_cpus_read_their_machine_checks_after_work(kernel, rtc):
    """Without an RTC the last of three CPUs watches; the one between looks when it has had work."""
    session = Session(Machine("microvm", 3, "128M", board=f"microvm,rtc={rtc}", cmdline="monitor"), kernel)
    session.asked = True
    with session as guest:
        guest.monitor("mce 1 4 0x8c0000000000009f 0 0x5000 0")
        deadline = patience.now() + SECONDS / 4
        while "machine check on CPU 1: corrected error, memory controller, bank 4" not in guest.text:  # at most a second
            assert patience.now() < deadline, guest.text
            guest.command("test kernel.padata.*")


def test_the_line_of_an_rtc_that_does_not_tick_is_masked(kernel):
    """The RTC interrupts elsewhere. Another device may share its usual line, and must not raise NMIs."""
    machine = Machine("pvh", 2, "256M", board="q35,hpet=off", cmdline="end=halt monitor", extra=("-global", "mc146818rtc.irq=9"), **ON_SCREEN)
    with Shown(machine, kernel) as guest:
        guest.wait("Commands: help.", SECONDS / 4, guest.vga_text)
        assert re.search("pin 8 .* masked", guest.monitor("info pic"))


def test_without_an_apic_nobody_watches(kernel):
    run(Machine("pvh", 1, "128M", cpu="max,-apic", cmdline=WORDS), kernel).ended().says("neither an RTC that sends NMIs nor an APIC: nobody watches")


def test_a_machine_check_is_named_while_the_run_lasts(kernel):
    """A corrected error of the boot CPU, on a machine that waits for commands."""
    with Shown(Machine("pvh", 2, "256M", cmdline="end=halt monitor", **ON_SCREEN), kernel) as guest:
        guest.wait("Commands: help.", SECONDS / 4, guest.vga_text)
        guest.monitor("mce 0 4 0x8c0000000000009f 0 0x5000 0")
        guest.wait("machine check on CPU 0: corrected error, memory controller, bank 4", SECONDS / 4, guest.vga_text)
        guest.press("ctrl", "d")
        guest.wait("ASHLAR-END", SECONDS / 4, guest.vga_text)


def test_an_nmi_of_the_board_is_a_request(kernel):
    """As a management controller or a button sends it, to all CPUs. One of them answers, and the run goes on."""
    with Shown(Machine("pvh", 3, "256M", cmdline="end=halt monitor", **ON_SCREEN), kernel) as guest:
        guest.wait("Commands: help.", SECONDS / 4, guest.vga_text)
        guest.ask("inject-nmi")
        guest.wait("request to show where the CPUs are", SECONDS / 4, guest.vga_text)
        lines = guest.wait("cpu_nap", SECONDS / 4, guest.vga_text)
        assert len([line for line in lines if "NMI without" in line]) == 1, "\n".join(lines)
        guest.press("ctrl", "d")
        guest.wait("ASHLAR-END", SECONDS / 4, guest.vga_text)


def test_an_idle_machine_gets_no_interrupts_of_the_pit(kernel):
    """Firmware lets it interrupt 18 times a second."""

    def ticks():
        return [line.split() for line in guest.monitor("info irq").splitlines() if re.match(r" *0: ", line)]

    with Shown(Machine("bios", 1, "256M", cmdline="monitor", **ON_SCREEN), kernel) as guest:
        guest.wait("Commands: help.", SECONDS, lambda: guest.picture().text())
        before = ticks()
        time.sleep(0.5)
        assert before and ticks() == before


def test_a_run_that_is_over_does_not_hang(kernel):
    """The machine halts for longer than the watchdog waits, and its last line stays the last one. Minutes of its clock pass at once."""
    machine = Machine("pvh", 1, "128M", accel=BY_INSTRUCTIONS, cmdline="end=halt end.hang=1 test=kernel.line.*")
    with Guest(machine, kernel) as guest:
        assert guest.wait_for("ASHLAR-END verdict=pass", SECONDS)
        assert not guest.wait_for("watchdog", 0.5), "\n".join(guest.lines[-8:])


def test_an_nmi_does_not_stop_a_panic(kernel):
    """A CPU that panics also gets the NMIs of CPUs that wait, after it has told all other CPUs to stop."""
    for _ in range(4):  # in about every second run the NMI comes while it matters
        run(Machine("pvh", 8, "256M", cmdline="payload=asked"), kernel).ended("crash").says("PANIC on CPU 0: while others ask")


def test_a_panic_stops_the_cpus_that_are_at_work(kernel):
    with Shown(Machine("pvh", 3, "256M", cmdline="end=halt payload=asked", **ON_SCREEN), kernel) as guest:
        guest.wait("ASHLAR-END verdict=crash", SECONDS / 4, guest.vga_text)
        halted = patience.until(lambda: guest.monitor("info registers -a").count("HLT=1"), SECONDS / 4, lambda count: count == 3)
        assert halted == 3, guest.monitor("info registers -a")


@pytest.mark.parametrize("board", ["q35", "pc", "microvm"])
def test_power_is_switched_off_as_the_tables_say(kernel, board):
    """QEMU ends by itself with status 0. Its exit port and its being an emulator are not there."""
    firmware = "microvm" if board == "microvm" else "pvh"
    machine = Machine(firmware, 2, "128M", board=board, cpu="max,-hypervisor", exit_port=False, cmdline=f"end=poweroff {WORDS}")
    outcome = run(machine, kernel)
    assert outcome.status == 0 and "ASHLAR-END verdict=pass" in outcome.text and "power stays on" not in outcome.text, outcome.report()


REGISTER = struct.pack("<BBBBQ", 1, 8, 0, 1, 0xF4)  # QEMU's exit port, whose status shows what was written to it


def test_power_is_switched_off_by_a_register_at_a_port(kernel, with_tables):
    """A table without PM1 ports. The byte is type 0, and 20h for "now"."""
    tables = table(b"FACP", 268, {112: (1 << 20).to_bytes(4, "little"), 244: REGISTER}), table(b"DSDT", 36 + len(S5), {36: S5})
    outcome = run(with_tables(tables, f"end=poweroff {WORDS}"), kernel)
    assert outcome.status == 0x20 << 1 | 1 and "power stays on" not in outcome.text, outcome.report()


@pytest.mark.parametrize("flag, status", [(1 << 10, 0x2B << 1 | 1), (0, 0)])
def test_a_machine_is_reset_by_the_register_of_its_tables(kernel, with_tables, flag, status):
    """A flag says whether the register may be used."""
    fadt = table(b"FACP", 244, {112: flag.to_bytes(4, "little"), 116: REGISTER + b"\x2b"})
    outcome = run(with_tables([fadt], f"end=reboot {WORDS}"), kernel)
    assert outcome.status == status, outcome.report()


def test_a_machine_is_reset_by_a_register_in_memory(kernel, with_tables):
    """The register and the byte are those with which microvm is switched off, so that the machine does not begin again."""
    register = struct.pack("<BBBBQ", 0, 8, 0, 1, 0xFEA00200)
    fadt = table(b"FACP", 244, {112: (1 << 10).to_bytes(4, "little"), 116: register + b"\x34"})
    with Guest(with_tables([fadt], f"end=reboot {WORDS}", firmware="microvm", reboots=True), kernel) as guest:
        assert guest.wait_for("ASHLAR-END verdict=pass", SECONDS) and not guest.wait_for("ASHLAR-BEGIN", SECONDS), "\n".join(guest.lines)
        assert guest.finish(SECONDS).status == 0


@pytest.mark.parametrize("damage, says", [
    ((b"_S5_", b"_S6_"), "ACPI's tables do not tell how to switch it off"),
    ((b"\x06\x04\0", b"\x07\x04\x0a\3"), "the machine does not react to ACPI's registers"),
], ids=["no-S5", "wrong-S5"])  # fmt: skip
def test_power_that_stays_on_is_said(kernel, with_tables, damage, says):
    """The tables are QEMU's q35, as in an acpidump. QEMU knows no sleep of type 3."""
    s5 = S5.replace(*damage)
    tables = table(b"FACP", 244, {64: (0x604).to_bytes(4, "little")}), table(b"DSDT", 36 + len(s5), {36: s5})
    with Guest(with_tables(tables, f"end=poweroff {WORDS}", exit_port=False), kernel) as guest:
        assert guest.wait_for(f"The power stays on: {says}", SECONDS), "\n".join(guest.lines[-8:])


REBOOTS = {"in a reset": "payload=hang end.hang=2 end.onhang=reboot", "with code 0x10": f"end=reboot {WORDS}"}


@pytest.mark.parametrize("ended", REBOOTS)
def test_a_run_knows_how_the_one_before_it_ended(kernel, ended):
    """The first run hangs and is reset by the watchdog, or it reboots at its end. The second run has the same kernel."""
    with Guest(Machine("pvh", 2, "256M", cmdline=REBOOTS[ended], reboots=True), kernel) as guest:
        assert guest.wait_for(f"run 2 since memory was last cleared; the run before it ended {ended}", SECONDS)


def test_a_pass_after_a_reset_is_no_pass(kernel):
    """The machine is reset while the tests run. The tests of the next run pass, but its verdict must not be a pass."""
    words = "end=halt test=mm.random.giga* test.soak=400000"  # takes seconds, so the reset comes in time
    with Shown(Machine("pvh", 2, "1G", cmdline=words, reboots=True, **ON_SCREEN), kernel) as guest:
        guest.wait("# Subtest: mm.random", SECONDS, guest.vga_text)
        guest.ask("system_reset")
        lines = guest.wait("ASHLAR-END verdict=crash", SECONDS, guest.vga_text)
        assert any("the run before this one ended in a reset" in line for line in lines), "\n".join(lines)
        guest.ask("system_reset")  # that run did end
        lines = guest.wait("ASHLAR-END verdict=pass", SECONDS, guest.vga_text)


def test_machine_page(kernel):
    """The page shows the topology of the CPUs, the clock, and the oddities of the start again; those of the run are counted."""
    words, smp = "console.page=on end.strict=off nosuch=1 test=acpi.srat.*", ("-smp", "8,sockets=2,cores=2,threads=2")
    run(Machine("pvh", 8, "1G", cmdline=words, extra=smp), kernel).ended().says(
        "8 in 4 cores in 2 packages", "errors   0 corrected, 0 uncorrected", "clock    TSC at",
        r"oddities 1:\n +command line: ignored: nosuch=1 is not known.*\n +and [0-9]+ of the run: see the log",
    )  # fmt: skip


@pytest.mark.parametrize("nodes", [1, 8])
def test_the_machine_page_takes_two_milliseconds_at_most(kernel, nodes):
    """Of 32 CPUs, on one node or eight: at 32 ns an instruction, 62,500 of them; each CPU is asked for its errors."""
    machine = Machine("pvh", 32, "2G", nodes=nodes, accel=BY_INSTRUCTIONS, cmdline="test=mm.machine.its_page*")
    took = re.search(r"^# the machine page took (\d+) ns$", run(machine, kernel).ended().text, re.M)
    assert int(took[1]) < 2_000_000, took[0]


def test_machine_checks_are_named_and_counted(kernel):
    """A corrected error is found at the next look. An uncorrected error that names a page is survived, and the page is taken out of use."""
    words = "console.page=on end=page test=mm.random.giga* test.soak=400000"  # takes seconds, so both errors come in time
    intel = "max,vendor=GenuineIntel"  # on AMD no page is withdrawn
    with Shown(Machine("pvh", 2, "256M", cpu=intel, cmdline=words, **ON_SCREEN), kernel) as guest:
        guest.wait("# Subtest: mm.random", SECONDS, guest.vga_text)
        guest.monitor("mce 1 4 0x8c0000000000009f 0 0x5000 0")
        guest.monitor("mce 1 5 0xbd0000000000009f 5 0x9123456 0x8c")
        lines = guest.wait("ASHLAR-END", SECONDS, guest.vga_text)
        text = "\n".join(lines)
    assert "errors   1 corrected, 1 uncorrected, 1 pages named" in text and "frame 9123 failed: it is out of use" in text, text
    assert "verdict=pass" in text
    assert "This machine" in lines, "the page and the verdict do not fit 80 columns and 25 rows:\n" + text


def test_code_that_needs_the_page_of_a_machine_check_is_not_run_again(kernel):
    """It would read the page again, and so on for ever."""
    intel = "max,vendor=GenuineIntel"
    with Shown(Machine("pvh", 2, "256M", cpu=intel, cmdline="end=halt monitor", **ON_SCREEN), kernel) as guest:
        guest.wait("Commands: help.", SECONDS / 4, guest.vga_text)
        guest.monitor("mce 1 5 0xbd80000000000134 7 0x9123456 0x8c")
        guest.wait("machine check: the interrupted code cannot continue", SECONDS / 4, guest.vga_text)
