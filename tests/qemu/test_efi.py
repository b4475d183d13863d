"""BOOTX64.EFI under OVMF: what GRUB does is done without it, from every kind of device, and under Secure Boot."""

import shutil
import subprocess

import pytest
from guest import Guest, run
from machine import Machine, make_image
from program import Program

SECONDS = 120
CASE = "test=kernel.string.compare_finds_each_byte_and_none_beyond"
HANDED_OVER = ("loader BOOTX64.EFI", "boot     uefi", r"framebuffer of \d+x\d+, 32 bits", "ACPI: revision 2 from the loader's copy", "ok 1 kernel.string")
OVMF = "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd"
OWN_VARS = "/usr/share/OVMF/OVMF_VARS_4M.snakeoil.fd"  # this key, and no other, is enrolled in it
OWN_KEY = "/usr/share/ovmf/PkKek-1-snakeoil"


def booted(machine, kernel):
    run(machine, kernel, SECONDS).ended().says(*HANDED_OVER)


def with_text(kernel, folder, text):
    """A machine whose image has this text as ASHLAR.TXT."""
    image = make_image(Machine("efi", cmdline="built=in"), kernel, folder / "ashlar.img")
    (folder / "text").write_bytes(text)
    subprocess.run(["mcopy", "-o", "-i", str(image), str(folder / "text"), "::/ASHLAR.TXT"], check=True)
    return Machine("efi", 2, "256M", image=str(image), display="std")


def drive(image, device):
    """A machine that boots the image from another device than the USB stick."""
    return Machine("efi", 2, "256M", image=str(image), display="std", drive=device)
