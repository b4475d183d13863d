"""A virtual machine as the tests and `make run` see it, and the QEMU command line that makes it.

Guests are larger than the host. Their RAM is not reserved (reserve=off), so it costs only what is touched. KVM is used only where
/proc/cpuinfo has vmx or svm and /dev/kvm can be opened, because elsewhere a /dev/kvm may exist and fail on common instructions.
"""

import functools
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIRMWARES = ("bios", "uefi", "efi", "pvh", "microvm")
FROM_IMAGE = ("bios", "uefi", "efi")  # GRUB, or BOOTX64.EFI, from an image with the command line
UEFI_IMAGE = "/usr/share/ovmf/OVMF.fd"  # deps.sh installs it
ICOUNT = r"icount(?:-(\d))?"
X2APIC_FROM = 256  # this many CPUs need x2APIC, which TCG has since QEMU 9
MMIO_WORD = "virtio_mmio.device=512@0xfeb00000:5"
MMIO_WORD_OUT = "virtio_mmio.device=512@0xfeb00200:6"
CMDLINE_MOST = 4095  # characters that the kernel reads (kernel/core/cmdline.h)
TOOLS = Path(os.environ.get("TOOLS") or ROOT / "build/tools")


def without_make():
    """The environment without what make gives to those that it starts, such as a variable that was typed."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "BUILD", "TOOLS"))}


class Unavailable(Exception):
    """This host cannot make the machine; the text says why."""


@dataclass(frozen=True)
class Machine:
    firmware: str = "bios"
    cpus: int = 1
    mem: str = "128M"
    nodes: int = 1
    cmdline: str = ""
    accel: str = "auto"
    cpu: str = "max"
    qemu: str = "auto"
    board: str = ""  # "": q35, or microvm
    words: str = ""  # every command line of this machine begins with this text
    reboots: bool = False  # a reset restarts the machine instead of ending QEMU
    module: str = ""  # a file that the loader passes to the kernel, such as a program's (program.py)
    image: str = ""  # boots this ISO instead of one made for the command line
    device: str = ""  # what the image is: cd, stick, nvme, pxe (a program of UEFI), http or ipxe (URIs); "": a stick with efi, else a CD
    display: str = "none"  # -vga std, or "ramfb"
    serial: tuple = ()  # QEMU's words for serial ports; (): one, the first
    uneven: bool = False  # node 2 without memory, node 5 without CPUs, distances as around a ring (SLIT)
    layout: tuple = ()  # RAM and number of CPUs of each node, ("256M", 3); (): even shares
    host: str = ""  # memory of the host that QEMU itself needs
    exit_port: bool = True  # the port by which a run ends QEMU
    strict: bool = True  # a word that the kernel does not know fails the run; end.strict=off among the words allows it
    balloon: bool = False  # a virtio-balloon device that wants reports of free pages
    out: str = ""  # a file for what the kernel sends with program.out=on (files_out.py)
    dealt: str = ""  # words of switches that matrix.py deals out; not in the name
    without: str = ""  # globs of cases that a run of all cases leaves out here
    extra: tuple = ()

    @property
    def name(self):
        parts = [self.firmware, f"{self.cpus}cpu", self.mem]
        if self.nodes > 1:
            parts.append(f"{self.nodes}node" + ("-uneven" if self.uneven else ""))
        if self.board:
            parts.append(self.board)
        parts += self.words.split()
        return "-".join(parts)

    @property
    def kernel_words(self):
        on_microvm = self.firmware == "microvm"
        places = (MMIO_WORD if self.balloon and on_microvm else "", MMIO_WORD_OUT if self.out and on_microvm else "")
        words = (self.words, self.dealt, *places, "program.out=on" if self.out else "", self.cmdline)
        return " ".join(filter(None, ("end.strict=on" if self.strict else "", *words))).strip()

    @property
    def ram_bytes(self):
        return parse_size(self.mem)


def parse_size(text):
    match = re.fullmatch(r"(\d+)([KMGT]?)(?:i?B)?", text.upper())
    if not match:
        raise ValueError(f"not a size: {text}")
    return int(match[1]) << {"": 20, "K": 10, "M": 20, "G": 30, "T": 40}[match[2]]


def kvm_usable():
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
        if not re.search(r"^flags\s*:.*\b(vmx|svm)\b", flags, re.M):
            return False
        with open("/dev/kvm", "rb+", buffering=0):
            return True
    except OSError:
        return False


def version_of(tool):
    """(2, 12) for a tool whose version is 2.12; (0, 0) if the tool cannot be asked."""
    try:
        text = subprocess.run([tool, "--version"], capture_output=True, text=True, timeout=200, check=False).stdout
    except OSError:
        return 0, 0
    match = re.search(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


@functools.cache
def fetch_qemu10():
    script = [str(ROOT / "tests/setup/beside.sh"), "qemu10", str(TOOLS)]
    try:
        return subprocess.run(script, capture_output=True, text=True, timeout=600, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(script, 1, "", "QEMU 10 cannot be had: fetching it took over 600 s")


def qemu10():
    """Path of a QEMU 10, which is fetched if necessary and possible."""
    done = fetch_qemu10()
    if done.returncode:
        raise Unavailable(done.stderr.strip().splitlines()[-1])
    return done.stdout.strip()


def qemu_path(machine, accel):
    if machine.qemu == "10" or machine.qemu == "auto" and machine.cpus >= X2APIC_FROM and accel != "kvm":
        return qemu10()
    name = "qemu-system-x86_64" if machine.qemu == "auto" else machine.qemu
    found = shutil.which(name)
    if not found:
        raise Unavailable(f"{name} is not installed")
    return found


MEMORYLESS, CPULESS = 2, 5  # nodes of uneven machines


def shares(total, takes):
    """The range that each part gets of 0..total: (first, last + 1). All parts that take something get as much as each other."""
    ends = [total * sum(takes[:number]) // sum(takes) for number in range(len(takes) + 1)]
    return zip(ends, ends[1:])


def node_shares(machine):
    """For each node: bytes of RAM, and its CPUs as (first, last + 1)."""
    if machine.layout:
        ends = [sum(cpus for _, cpus in machine.layout[: node + 1]) for node in range(machine.nodes)]
        return [(parse_size(size), (end - cpus, end)) for (size, cpus), end in zip(machine.layout, ends)]
    ram = shares(machine.ram_bytes >> 20, [not (machine.uneven and node == MEMORYLESS) for node in range(machine.nodes)])
    cpus = shares(machine.cpus, [not (machine.uneven and node == CPULESS) for node in range(machine.nodes)])
    return [((end - start) << 20, span) for (start, end), span in zip(ram, cpus)]


def distance_args(machine):
    args = []
    for a in range(machine.nodes):
        for b in range(a + 1, machine.nodes):
            steps = min(b - a, machine.nodes - (b - a))
            args += ["-numa", f"dist,src={a},dst={b},val={10 + 5 * steps}"]
    return args


def memory_args(machine):
    """Give the guest RAM through explicit backends, one per node, so that the RAM can be left unreserved."""
    if machine.nodes == 1:
        return ["-object", f"memory-backend-ram,id=r,size={machine.ram_bytes},reserve=off"], ",memory-backend=r"
    args = []
    for node, (size, (first, end)) in enumerate(node_shares(machine)):
        description = f"node,nodeid={node}"
        if size:
            args += ["-object", f"memory-backend-ram,id=r{node},size={size},reserve=off"]
            description += f",memdev=r{node}"
        if end > first:
            description += f",cpus={first}-{end - 1}"
        args += ["-numa", description]
    return args + (distance_args(machine) if machine.uneven else []), ""


def display_args(machine):
    """The guest never opens a window. If no ports are named, the first serial port is the terminal, as `make run` needs it."""
    vga = ["-vga", "none", "-device", "ramfb"] if machine.display == "ramfb" else ["-vga", machine.display]
    if machine.serial:
        return ["-display", "none", "-monitor", "none"] + vga + list(machine.serial)
    return ["-nographic"] + vga


def require_room_for_grub(machine):
    """From 2.12 on, GRUB takes 32 MiB at once before it reads its menu. Under OVMF it stops at 72 MiB and works at 80."""
    if machine.ram_bytes < 80 << 20 and version_of("grub-mkrescue") >= (2, 12):
        raise Unavailable("GRUB 2.12 does not start under UEFI in less than 80 MiB")


def require_host_memory(machine):
    """QEMU 10 keeps the address space once for each CPU, which takes 7 GiB for 512 CPUs with 4 TiB on 8 nodes and four times as much for
    1024."""
    total = re.search(r"^MemTotal:\s*(\d+) kB$", Path("/proc/meminfo").read_text(encoding="ascii"), re.M)
    if machine.host and int(total[1]) * 1024 < parse_size(machine.host):
        raise Unavailable(f"QEMU itself needs a host with {machine.host} of memory")


def net_args(user, card):
    """A network without the host's, and a card on it. iPXE is in the card's ROM (romfile= takes it out) and goes before OVMF's own."""
    return ["-netdev", f"user,id=net{user}", "-device", f"virtio-net-pci,netdev=net{card}", "-device", "virtio-rng-pci"]


def boot_args(machine, kernel, iso):
    if machine.firmware in ("pvh", "microvm"):
        module = ["-initrd", machine.module] if machine.module else []
        return ["-kernel", str(kernel), "-append", machine.kernel_words, *module]
    device = machine.device or ("stick" if machine.firmware == "efi" else "cd")
    drive = ["-drive", f"if=none,id=boot,format=raw,readonly={'off' if machine.reboots else 'on'},file={iso}"]
    args = {
        "cd": ["-cdrom", str(iso), "-boot", "d"],
        "stick": [*drive, "-device", "qemu-xhci", "-device", "usb-storage,drive=boot,removable=on,bootindex=0"],
        "nvme": [*drive, "-device", "nvme,drive=boot,serial=1,bootindex=0"],
        "pxe": net_args(f",tftp={Path(iso).parent},bootfile={Path(iso).name}", ",romfile=,bootindex=0"),
        "http": net_args("", ",romfile="),
        "ipxe": net_args(f",bootfile={iso}", ",bootindex=0"),
    }[device]
    if machine.firmware == "uefi":
        require_room_for_grub(machine)
    return (["-bios", UEFI_IMAGE] if "efi" in machine.firmware else []) + args


def icount_args(accel):
    """With icount the run is a function of the image, the command line and QEMU's version. QEMU runs one CPU at a time, and each
    instruction takes a nanosecond of the guest's clock (icount-5: 2^5 ns), which does not wait for the host's while all CPUs are halted."""
    match = re.fullmatch(ICOUNT, accel)
    if not match:
        return []
    shift = f"shift={match[1] or 0},sleep=off"
    return ["-accel", "tcg,thread=single", "-icount", shift, "-seed", "1", "-rtc", "base=2026-01-01,clock=vm"]


def virtio_args(machine):
    """microvm has no PCI. Its places for devices begin at MMIO_WORD's address, and the kernel drives modern devices only."""
    on_microvm, args = machine.firmware == "microvm", []
    if on_microvm and (machine.balloon or machine.out):
        args += ["-global", "virtio-mmio.force-legacy=false"]
    if machine.balloon:
        device = "virtio-balloon-device,bus=virtio-mmio-bus.0" if on_microvm else "virtio-balloon-pci"
        args += ["-device", f"{device},id=balloon,free-page-reporting=on"]
    if machine.out:
        device = "virtio-serial-device,bus=virtio-mmio-bus.1" if on_microvm else "virtio-serial-pci,disable-legacy=on"
        args += ["-chardev", f"file,id=out,path={machine.out.replace(',', ',,')}"]
        args += ["-device", f"{device},max_ports=1", "-device", "virtconsole,chardev=out"]
    return args


def command(machine, kernel, iso=None):
    """argv of QEMU. `iso` must hold the command line already; only bios and uefi use it."""
    if machine.firmware not in FIRMWARES:
        raise Unavailable(f"no firmware {machine.firmware}: one of {', '.join(FIRMWARES)}")
    accel = ("kvm" if kvm_usable() else "tcg") if machine.accel == "auto" else machine.accel
    require_host_memory(machine)
    board = machine.board or ("microvm" if machine.firmware == "microvm" else "q35")
    cpu = machine.cpu
    if machine.ram_bytes >= 1 << 39 and cpu == "max":
        cpu = "max,phys-bits=46"
    memory, backend = memory_args(machine)
    accel_args = icount_args(accel) or ["-accel", {"tcg": "tcg,thread=multi"}.get(accel, accel)]
    if accel == "kvm" and machine.cpus >= X2APIC_FROM:
        backend += ",kernel-irqchip=split"
    return [
        *(qemu_path(machine, accel), "-M", board + backend, *accel_args, "-cpu", cpu),
        *("-smp", str(machine.cpus), "-m", f"{machine.ram_bytes >> 20}M", *memory, *display_args(machine), "-nic", "none"),
        *([] if machine.reboots else ["-no-reboot"]),
        *(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"] if machine.exit_port else []),
        *boot_args(machine, kernel, iso), *virtio_args(machine), *machine.extra,
    ]  # fmt: skip


def make_image(machine, kernel, out, menu_seconds=0):
    """The bootable image of the machine with its command line and module; GRUB's menu waits so long. Raises with the tool's own words if
    it cannot be made."""
    script, *more = ["mkefi.sh"] if machine.firmware == "efi" else ["mkiso.sh", str(menu_seconds)]
    words = [str(ROOT / "boot" / script), str(kernel), machine.kernel_words, str(out), *more, machine.module]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(f"{script} failed: {done.stdout}{done.stderr}")
    return out
