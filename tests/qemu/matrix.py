"""The machines that the suite boots.

`make test` boots the eleven machines below. Every firmware, CPU count and RAM size of the full product occurs, and the extremes occur in
several combinations. Every value of every switch (SWITCHES) occurs, too, chosen on the command line; cases that need another choice make it
themselves. Those that belong together stand beside a machine whose memory suffices for them, and the others are dealt out. The first machine
runs the default payload, as `make run` does, and the others run kernel tests: every case is chosen on at least three of them. A few that
need more memory than these have skip themselves on some or all (expected-skips.txt). Cases that see only bytes (TEXT) or calls of programs
(PROGRAMS), or in which one CPU works (ONE_WORKS), are left out where another machine of the same kind runs them.

CPUs without ERMS among those that run by instructions clear 8 bytes with each instruction instead of one. `make test WHAT=matrix` boots all
pairs that are possible: OVMF does not reach GRUB with many CPUs in 64 MiB.
"""

import itertools
from dataclasses import replace
from pathlib import Path

import texts
from machine import FIRMWARES, Machine, parse_size

CPUS = (1, 2, 3, 8, 32, 252, 288)
RAM = ("64M", "128M", "3G", "5G", "12G")

PAYLOAD = Machine("bios", 32, "12G")

QEMU = (7, 2)  # of Debian 12. With another version the CPUs of a guest take turns in another order; each order must pass.
BY_INSTRUCTIONS = "icount-5"  # with a nanosecond for an instruction, waits of seconds take minutes
NO_ERMS = "max,-erms"
TEXT = "acpi.*,boot.*,kernel.cmdline,kernel.command,kernel.format,kernel.ktap,kernel.line,kernel.pager,kernel.reason,kernel.string"
PROGRAMS = "program.*"
# Cases that write or compare a GiB, or all struct pages: one to three of the machines and hosted runs have them. The first one takes 20 s
# by instructions, and only the hosted run with 6 GiB has it.
LARGE = (
    "mm.api.a_gigabyte*,mm.clear.all_bytes*,mm.fault_giga.growing*,mm.hvo.every_mode*,"
    "mm.memmap_open.any_number*,mm.memmap_open.poisoned*"
)


# Cases in which one CPU works and the others wait: nothing is told by 32 that wait.
ONE_WORKS = "mm.api.a_gigabyte*,mm.brim.*,mm.fault*,mm.history.*,mm.huge_map.a_part_of*,program.file.random_writes*"
# Likewise, where the host runs hundreds of CPUs in parallel, which all answer each round.
FEW_WORK = (
    f"{ONE_WORKS},mm.hvo.every_mode*,mm.hvo.frames_run*,mm.map.addresses_are_used*,"
    "mm.random.*,virtio.*"
)
# Whether an instruction is interrupted in its middle is luck where CPUs run in parallel.
LUCK = "mm.clear.an_interrupt*"
# With more than 255 CPUs, what differs is how CPUs are named and counted. Suites that ask for neither run with 252.
NO_NAMES = (
    "mm.account.*,mm.bad.*,mm.clear.*,mm.contig.*,mm.giga.*,mm.gigablock.*,mm.huge_map.*,mm.map.*,mm.memmap.*,mm.memmap_open.*,mm.meta.*,"
    "mm.section.*,mm.watermark.*"
)


ROWS = texts.rows(Path(__file__).with_name("switches.txt"), r"(\S+)(?: +(.+))?")
SWITCHES = {name: values for name, values in ROWS if values}
ELSEWHERE = [name for name, values in ROWS if not values]


def values_of(machine):
    return dict(word.split("=") for word in f"{machine.words} {machine.dealt}".split())


def shows(machine, switch, value):
    """Do cases that the value concerns run on this machine, and can it do as the value says?"""
    cases = PROGRAMS if switch.startswith("program.") else "mm.clear.*" if switch == "clear.insn" else None
    impossible = (
        (value == "erms" and machine.cpu == NO_ERMS)
        or (switch == "x2apic" and machine.cpus > 254)
        or (switch in ("memmap", "program.overcommit") and machine.ram_bytes < parse_size("1G"))  # few sections; 2 refuses half of it
    )
    return cases not in machine.without.split(",") and not impossible


def deal(machines):
    """The machines, with each value that none of them has given to one with the fewest words that leaves that switch as it is."""
    dealt = list(machines)
    for switch, values in SWITCHES.items():
        for value in values.split("|")[1:]:
            if any(values_of(machine).get(switch) == value for machine in dealt):
                continue
            fit = (i for i, m in enumerate(dealt) if switch not in values_of(m) and shows(m, switch, value))
            i = min(fit, key=lambda i: len(values_of(dealt[i])))
            dealt[i] = replace(dealt[i], dealt=f"{dealt[i].dealt} {switch}={value}".lstrip())
    return tuple(dealt)


def counted(firmware, cpus, mem, **more):
    return Machine(firmware, cpus, mem, accel=BY_INSTRUCTIONS, **more)


CHOSEN = deal((
    counted("bios", 1, "64M"),
    Machine("bios", 252, "5G", without=f"{TEXT},{PROGRAMS},{FEW_WORK},{LUCK}"),
    counted("uefi", 2, "64M", without=f"{TEXT},{PROGRAMS}", cpu=NO_ERMS),
    counted("uefi", 8, "5G", nodes=2, without="mm.memmap_open.poisoned*", cpu=NO_ERMS, words="memmap=parallel contig=vanilla pcp.type_cache=on"),
    # OVMF's CPUs spin until they are started: with 32, its start takes as long as a fifth of the cases
    counted("bios", 32, "3G", without=f"{TEXT},{PROGRAMS},{ONE_WORKS},{LARGE}", cpu=NO_ERMS,
            words="memmap=parallel memmap.threads=50% hvo=batched contig=step"),
    counted("pvh", 3, "12G", without=f"{TEXT},{PROGRAMS},{LARGE}", cpu=NO_ERMS, words="memmap=serial hvo=unbatched contig=skip clear=page"),
    counted("pvh", 32, "12G", nodes=8, uneven=True, without=f"{TEXT},{ONE_WORKS},{LARGE}", cpu=NO_ERMS),
    Machine("pvh", 288, "3G", without=f"{TEXT},{PROGRAMS},{FEW_WORK},{NO_NAMES}"),
    counted("microvm", 1, "5G", cpu=NO_ERMS, without=f"{TEXT},{PROGRAMS},{LARGE}", words="memmap=parallel memmap.threads=1 hvo=off contig=revert"),
    counted("microvm", 8, "128M", words="memmap=parallel memmap.threads=0 contig=strict"),
))

# CPU models of make test WHAT=machines.
MODELS = """qemu64 Nehalem Haswell Icelake-Server EPYC EPYC-Milan max,pdpe1gb=off max,erms=off max,smep=off,smap=off max,la57=on
max,x2apic=off max,pmu=off,mca=off,mce=off""".split()
MODELS_OF_QEMU_10 = ("SapphireRapids", "GraniteRapids", "EPYC-Genoa")

# Machines for a kernel built with DEBUG=san, which checks every access.
SANITIZED = (Machine("pvh", 2, "3G"), Machine("bios", 8, "5G"))

HUGE = (
    Machine("pvh", 1024, "12G"),
    Machine("bios", 32, "4T", qemu="10"),
    Machine("pvh", 512, "4T", nodes=8),
    Machine("pvh", 1024, "4T", nodes=8, host="40G"),
)


BOOTED = [firmware for firmware in FIRMWARES if firmware != "efi"]  # to the kernel it is as uefi


def possible(machine):
    return not (machine.firmware == "uefi" and machine.cpus > 32 and machine.ram_bytes < parse_size("128M"))


def product():
    return [m for m in itertools.starmap(Machine, itertools.product(BOOTED, CPUS, RAM)) if possible(m)]


def pairs(machine):
    values = (machine.firmware, machine.cpus, machine.mem)
    return {(i, values[i], j, values[j]) for i in range(3) for j in range(i + 1, 3)}


def all_pairs():
    """A small set of machines that covers every pair, chosen greedily: the machine that adds most comes first."""
    left, chosen = set().union(*map(pairs, product())), []
    while left:
        chosen.append(max(product(), key=lambda machine: len(pairs(machine) & left)))
        left -= pairs(chosen[-1])
    return chosen


def deadline(machine):
    """Seconds of silence after which a guest counts as hung. Its start and every case take a tenth of that on a quiet host."""
    start = {"bios": 10, "uefi": 40, "efi": 40, "pvh": 5, "microvm": 5}[machine.firmware]
    return start + 900 + machine.cpus * 1.2 + machine.ram_bytes / (1 << 40) * 60
