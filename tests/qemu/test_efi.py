"""BOOTX64.EFI under OVMF: what GRUB does is done without it, from every kind of device, and under Secure Boot."""

import shutil
import subprocess
from dataclasses import replace

import patience
import pytest
from guest import Guest, run
from machine import Machine, make_image

SECONDS = 120
CASE = "test=kernel.string.compare_finds_each_byte_and_none_beyond"
HANDED_OVER = ("loader BOOTX64.EFI", "boot     uefi", r"framebuffer of \d+x\d+, 32 bits", "ACPI: revision 2 from the loader's copy", "ok 1 kernel.string")
OVMF = "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd"
OWN_VARS = "/usr/share/OVMF/OVMF_VARS_4M.snakeoil.fd"  # this key, and no other, is enrolled in it
OWN_KEY = "/usr/share/ovmf/PkKek-1-snakeoil"


def with_text(kernel, folder, text, mem="256M"):
    """A machine whose image has this text as ASHLAR.TXT."""
    image = make_image(Machine("efi", cmdline="built=in"), kernel, folder / "ashlar.img")
    (folder / "text").write_bytes(text)
    subprocess.run(["mcopy", "-o", "-i", str(image), str(folder / "text"), "::/ASHLAR.TXT"], check=True)
    return Machine("efi", 2, mem, image=str(image), display="std")


def test_every_character_of_the_text_beside_it_arrives(kernel, tmp_path):
    """Lines of Windows' editor, joined; the words that were built in do not count."""
    machine = with_text(kernel, tmp_path, b"\xef\xbb\xbfno$such=a\\b;{c}'d'\r\nend.strict=off\r\n\r\n" + CASE.encode() + b"\r\n")
    outcome = run(machine, kernel, SECONDS).ended().says(*HANDED_OVER, r"no\$such=a\\b;\{c\}'d' is not known")
    assert "built=in" not in outcome.text


def test_what_cannot_be_started_is_told_and_firmware_goes_on(kernel, tmp_path):
    with Guest(with_text(kernel, tmp_path, b"module /no/such.file words\n"), kernel) as guest:
        assert guest.wait_for(r"Ashlar cannot load /no/such\.file: EFI error 14", SECONDS), "\n".join(guest.lines)
        assert guest.wait_for(r"BdsDxe: failed to start Boot", SECONDS), "\n".join(guest.lines)


@pytest.mark.metal
def test_words_of_a_shell_replace_those_of_the_text(kernel, tmp_path):
    machine = with_text(kernel, tmp_path, b"test=no.such.case")
    (tmp_path / "startup.nsh").write_text(f"FS0:\\ashlar.efi {CASE}\r\n", encoding="ascii")
    subprocess.run(["mmove", "-i", machine.image, "::/EFI/BOOT/BOOTX64.EFI", "::/ashlar.efi"], check=True)
    subprocess.run(["mcopy", "-i", machine.image, str(tmp_path / "startup.nsh"), "::/"], check=True)
    run(machine, kernel, SECONDS).ended().says(*HANDED_OVER)


@pytest.mark.metal
@pytest.mark.parametrize("device", ["stick", "nvme", "cd", "net"])
def test_efi_devices(kernel, tmp_path, device):
    words = Machine("efi", cmdline=CASE)
    image = make_image(words, kernel, tmp_path / ("BOOTX64.EFI" if device == "net" else "ashlar.img"))
    if device == "cd":
        subprocess.run(["xorriso", "-as", "mkisofs", "-quiet", "-e", image.name, "-no-emul-boot", "-o", f"{image}.iso", str(tmp_path)], check=True)
        image = f"{image}.iso"
    run(Machine("efi", 2, "256M", image=str(image), device=device, display="std"), kernel, SECONDS).ended().says(*HANDED_OVER)


@pytest.mark.metal
def test_after_a_reset_the_log_is_on_the_stick(kernel, tmp_path):
    """The run ends in a reset. Its log is saved at the next start, which does not run the kernel again."""
    machine = with_text(kernel, tmp_path, f"once\nend=reboot {CASE}".encode(), "512M")  # enough for a log of 1 MiB
    subprocess.run(["mcopy", "-i", machine.image, str(tmp_path / "text"), "::/ASHLAR.LOG"], check=True)
    with Guest(replace(machine, reboots=True, exit_port=False), kernel) as guest:
        assert guest.wait_for("ASHLAR.LOG has the log of the last run", SECONDS), "\n".join(guest.lines)
        assert not any("may be wrong" in line for line in guest.lines)
        guest.wait_text(["Boot Manager"], patience.now() + SECONDS)  # firmware's menu
    log = subprocess.run(["mtype", "-i", machine.image, "::/ASHLAR.LOG"], capture_output=True, text=True, check=True).stdout
    assert log.startswith("ASHLAR-BEGIN\n") and "ok 1 kernel.string\n" in log and "ASHLAR-END verdict=pass code=0x10\n" in log, log
    assert sum("ASHLAR-BEGIN" in line for line in guest.lines) == 1


def secured(kernel, folder, sign):
    """A machine in Secure Boot mode that boots the program, signed or not, from a stick."""
    program = make_image(Machine("efi", cmdline=CASE), kernel, folder / "BOOTX64.EFI")
    if sign:
        subprocess.run(["openssl", "rsa", "-passin", "pass:snakeoil", "-in", f"{OWN_KEY}.key", "-out", folder / "key"], check=True)
        subprocess.run(["sbsign", "--key", folder / "key", "--cert", f"{OWN_KEY}.pem", "--output", program, program], check=True)
    image = make_image(Machine("efi", cmdline=CASE), kernel, folder / "ashlar.img")
    subprocess.run(["mcopy", "-o", "-i", str(image), str(program), "::/EFI/BOOT/BOOTX64.EFI"], check=True)
    shutil.copy(OWN_VARS, folder / "vars")
    flash = ("-drive", f"if=pflash,format=raw,unit=0,readonly=on,file={OVMF}", "-drive", f"if=pflash,format=raw,unit=1,file={folder}/vars")
    secure = ("-global", "driver=cfi.pflash01,property=secure,value=on", "-global", "ICH9-LPC.disable_s3=1", *flash)
    return Machine("efi", 2, "256M", image=str(image), display="std", board="q35,smm=on", extra=secure)


@pytest.mark.metal
def test_secure_boot_starts_what_is_signed(kernel, tmp_path):
    run(secured(kernel, tmp_path, sign=True), kernel, SECONDS).ended().says(*HANDED_OVER)


@pytest.mark.metal
def test_secure_boot_refuses_what_is_not_signed(kernel, tmp_path):
    with Guest(secured(kernel, tmp_path, sign=False), kernel) as guest:
        assert guest.wait_for(r"BdsDxe: failed to load Boot\d+ .*: Access Denied", SECONDS), "\n".join(guest.lines)
    assert not any("ASHLAR-BEGIN" in line for line in guest.lines)


def test_the_program_is_marked_for_revocation_and_the_same_whenever_it_is_built(kernel, tmp_path):
    made = [make_image(Machine("efi", cmdline=CASE), kernel, tmp_path / f"{n}.EFI") for n in range(2)]
    assert made[0].read_bytes() == made[1].read_bytes()
    shown = subprocess.run(["objdump", "-s", "-j", ".sbat", str(made[0])], capture_output=True, text=True, check=True).stdout
    assert "sbat,1,SBAT" in shown
