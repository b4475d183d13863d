"""The machines that the suite boots.

`make test` boots the eleven machines below. Every firmware, CPU count and RAM size of the full product occurs, and the extremes occur in
several combinations. Every way to make struct pages at boot and every baseline occurs, too, chosen on the command line; cases that need
another choice make it themselves. All baselines but contig=strict are on machines whose memory is enough for all cases. The first machine
runs the default payload, as `make run` does, and the others run kernel tests: every case is chosen on at least three of them. A few that
need more memory than these have skip themselves on some or all (expected-skips.txt). Cases that see only bytes (TEXT) or calls of programs
(PROGRAMS), or in which one CPU works (ONE_WORKS), are left out where another machine of the same kind runs them.

CPUs without ERMS among those that run by instructions clear 8 bytes with each instruction instead of one. `make test WHAT=matrix` boots all
pairs that are possible: OVMF does not reach GRUB with many CPUs in 64 MiB.
"""

import itertools

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
# With more than 255 CPUs, what differs is how CPUs are named and counted. Suites that ask for neither run with 252.
NO_NAMES = "mm.bad.*,mm.clear.*,mm.contig.*,mm.giga.*,mm.huge_map.*,mm.memmap_open.*,mm.pressure.*,mm.section.*,virtio.*"


def counted(firmware, cpus, mem, **more):
    return Machine(firmware, cpus, mem, accel=BY_INSTRUCTIONS, **more)


CHOSEN = (
    counted("bios", 1, "64M"),
    Machine("bios", 252, "5G", without=f"{TEXT},{PROGRAMS},{ONE_WORKS}"),
    counted("uefi", 2, "64M", without=f"{TEXT},{PROGRAMS}", cpu=NO_ERMS),
    counted("uefi", 8, "5G", nodes=2, cpu=NO_ERMS, words="memmap=parallel contig=vanilla pcp.type_cache=on"),
    counted(
        *("uefi", 32, "3G"),
        without=f"{TEXT},{PROGRAMS},{ONE_WORKS},{LARGE}",
        cpu=NO_ERMS,
        words="memmap=parallel memmap.threads=50% hvo=batched contig=step",
    ),
    counted("pvh", 3, "12G", without=f"{TEXT},{PROGRAMS},{LARGE}", cpu=NO_ERMS, words="memmap=serial hvo=unbatched contig=skip clear=page"),
    counted("pvh", 32, "12G", nodes=8, uneven=True, without=f"{TEXT},{ONE_WORKS},{LARGE}", cpu=NO_ERMS),
    Machine("pvh", 288, "3G", without=f"{TEXT},{PROGRAMS},{ONE_WORKS},{NO_NAMES}"),
    counted("microvm", 1, "5G", cpu=NO_ERMS, without=f"{TEXT},{PROGRAMS},{LARGE}", words="memmap=parallel memmap.threads=1 hvo=off contig=revert"),
    counted("microvm", 8, "128M", words="memmap=parallel memmap.threads=0 contig=strict"),
)

# Machines for a kernel built with DEBUG=san, which checks every access.
SANITIZED = (Machine("pvh", 2, "3G"), Machine("bios", 8, "5G"))

HUGE = (
    Machine("pvh", 1024, "12G"),
    Machine("bios", 32, "4T", qemu="10"),
    Machine("pvh", 512, "4T", nodes=8),
    Machine("pvh", 1024, "4T", nodes=8, host="40G"),
)


def possible(machine):
    return not (machine.firmware == "uefi" and machine.cpus > 32 and machine.ram_bytes < parse_size("128M"))


def product():
    return [m for m in itertools.starmap(Machine, itertools.product(FIRMWARES, CPUS, RAM)) if possible(m)]


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
    start = {"bios": 10, "uefi": 40, "pvh": 5, "microvm": 5}[machine.firmware]
    return start + 900 + machine.cpus * 1.2 + machine.ram_bytes / (1 << 40) * 60
