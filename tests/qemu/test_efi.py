"""BOOTX64.EFI under OVMF: what GRUB does is done without it, from every kind of device, and under Secure Boot."""

import struct
import subprocess
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import efi_vars
import patience
import pytest
from guest import Guest, run
from machine import Machine, make_image

SECONDS = 120
CASE = "test=kernel.string.compare_finds_each_byte_and_none_beyond"
HANDED_OVER = ("loader BOOTX64.EFI", "boot     uefi", r"framebuffer of \d+x\d+, 32 bits", "ACPI: revision 2 from the loader's copy", "ok 1 kernel.string")
OVMF, OVMF_SECURE = "/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd"


def in_image(image):
    """mtools' words for the partition of an image."""
    return ["-i", f"{image}@@1M"]


def with_text(kernel, folder, text, mem="256M"):
    """A machine whose image has this text as ASHLAR.TXT."""
    image = make_image(Machine("efi", cmdline="built=in test=none"), kernel, folder / "ashlar.img")
    (folder / "text").write_bytes(text)
    subprocess.run(["mcopy", "-o", *in_image(image), str(folder / "text"), "::/ASHLAR.TXT"], check=True)
    return Machine("efi", 2, mem, image=str(image), display="std")


def test_every_character_of_the_text_beside_it_arrives(kernel, tmp_path):
    """Lines of Windows' editor, joined; the words that were built in do not count."""
    machine = with_text(kernel, tmp_path, b"\xef\xbb\xbfno$such=a\\b;{c}'d'\r\nend.strict=off\r\n\r\n" + CASE.encode() + b"\r\n")
    outcome = run(machine, kernel, SECONDS / 2).ended().says(*HANDED_OVER, r"no\$such=a\\b;\{c\}'d' is not known")
    assert "built=in" not in outcome.text


@pytest.mark.parametrize(("text", "says"), [
    (b"module /no/such.file words\n", r"load /no/such\.file: EFI error 14"),
    (b"module /EFI\n", "load /EFI: EFI error 03"),  # a folder
    (b"a\0b\n", "use ASHLAR.TXT: it is no text in UTF-8"),
], ids=["no-file", "a-folder", "no-text"])  # fmt: skip
def test_what_cannot_be_started_is_told_and_firmware_goes_on(kernel, tmp_path, text, says):
    with Guest(with_text(kernel, tmp_path, text), kernel) as guest:
        assert guest.wait_for(f"Ashlar cannot {says}", SECONDS / 4), "\n".join(guest.lines)
        assert guest.wait_for(r"BdsDxe: failed to start Boot", SECONDS / 4), "\n".join(guest.lines)


@pytest.mark.metal
def test_words_of_a_shell_replace_those_of_the_text(kernel, tmp_path):
    machine = with_text(kernel, tmp_path, b"test=no.such.case")
    (tmp_path / "startup.nsh").write_text(f"FS0:\\ashlar.efi {CASE}\r\n", encoding="ascii")
    subprocess.run(["mmove", *in_image(machine.image), "::/EFI/BOOT/BOOTX64.EFI", "::/ashlar.efi"], check=True)
    subprocess.run(["mcopy", *in_image(machine.image), str(tmp_path / "startup.nsh"), "::/"], check=True)
    run(machine, kernel, SECONDS).ended().says(*HANDED_OVER)


@pytest.mark.metal
@pytest.mark.parametrize("device", ["stick", "nvme", "cd", "pxe"])
def test_efi_devices(kernel, tmp_path, device):
    words = Machine("efi", cmdline=CASE)
    image = make_image(words, kernel, tmp_path / ("BOOTX64.EFI" if device == "pxe" else "ashlar.img"))
    if device == "cd":
        image.write_bytes(image.read_bytes()[1 << 20 :])  # without the table
        subprocess.run(["xorriso", "-as", "mkisofs", "-quiet", "-e", image.name, "-no-emul-boot", "-o", f"{image}.iso", str(tmp_path)], check=True)
        image = f"{image}.iso"
    run(Machine("efi", 2, "256M", image=str(image), device=device, display="std"), kernel, SECONDS).ended().says(*HANDED_OVER)


@pytest.mark.metal
def test_after_a_reset_the_log_is_on_the_stick(kernel, tmp_path):
    """The run ends in a reset. Its log is saved at the next start, which does not run the kernel again."""
    machine = with_text(kernel, tmp_path, f"once\nend=reboot {CASE}".encode(), "512M")  # enough for a log of 1 MiB
    subprocess.run(["mcopy", *in_image(machine.image), str(tmp_path / "text"), "::/ASHLAR.LOG"], check=True)
    with Guest(replace(machine, reboots=True, exit_port=False), kernel) as guest:
        assert guest.wait_for("ASHLAR.LOG has the log of the last run", SECONDS), "\n".join(guest.lines)
        assert not any("may be wrong" in line for line in guest.lines)
        guest.wait_text(["Boot Manager"], patience.now() + SECONDS)  # firmware's menu
    log = subprocess.run(["mtype", *in_image(machine.image), "::/ASHLAR.LOG"], capture_output=True, text=True, check=True).stdout
    assert log.startswith("ASHLAR-BEGIN\n") and "ok 1 kernel.string\n" in log and "ASHLAR-END verdict=pass code=0x10\n" in log, log
    assert sum("ASHLAR-BEGIN" in line for line in guest.lines) == 1


def flash(folder, variables, code=OVMF):
    """QEMU's words for firmware that begins with these variables."""
    efi_vars.write(variables, folder / "vars")
    drives = (f"unit=0,readonly=on,file={code}", f"unit=1,file={folder}/vars")
    return tuple(word for drive in drives for word in ("-drive", f"if=pflash,format=raw,{drive}"))


@contextmanager
def served(folder):
    """The URI at which a guest finds the folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=folder)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://10.0.2.2:{server.server_port}"
        server.shutdown()


@pytest.mark.metal
@pytest.mark.parametrize("device", ["http", "ipxe"])
def test_efi_from_http(kernel, tmp_path, device):
    """By OVMF's own means, with a boot option as its menu makes it; and by iPXE, whose script gives the words."""
    make_image(Machine("efi", cmdline=CASE if device == "http" else "test=no.such.case"), kernel, tmp_path / "BOOTX64.EFI")
    with served(tmp_path) as uri:
        (tmp_path / "ashlar.ipxe").write_text(f"#!ipxe\nkernel {uri}/BOOTX64.EFI {CASE}\nboot\n", encoding="ascii")
        firmware = flash(tmp_path, efi_vars.boot_from(f"{uri}/BOOTX64.EFI") if device == "http" else [])
        machine = Machine("efi", 2, "256M", image=f"{uri}/ashlar.ipxe", device=device, display="std", extra=firmware)
        run(machine, kernel, SECONDS).ended().says(*HANDED_OVER)


def secured(kernel, folder, signer):
    """A machine in Secure Boot mode that knows our own key and boots the program from a stick, signed with a key or not."""
    for name in ("own", "other"):
        key = ["-newkey", "rsa:2048", "-nodes", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt", "-subj", f"/CN={name}"]
        subprocess.run(["openssl", "req", "-x509", *key], capture_output=True, check=True)
    enrolled = subprocess.run(["openssl", "x509", "-in", folder / "own.crt", "-outform", "DER"], capture_output=True, check=True).stdout
    program = make_image(Machine("efi", cmdline=CASE), kernel, folder / "BOOTX64.EFI")
    if signer:
        words = ["--key", folder / f"{signer}.key", "--cert", folder / f"{signer}.crt", "--output", program, program]
        subprocess.run(["sbsign", *words], check=True)
    image = make_image(Machine("efi", cmdline=CASE), kernel, folder / "ashlar.img")
    subprocess.run(["mcopy", "-o", *in_image(image), str(program), "::/EFI/BOOT/BOOTX64.EFI"], check=True)
    firmware = flash(folder, efi_vars.keys(enrolled), OVMF_SECURE)
    secure = ("-global", "driver=cfi.pflash01,property=secure,value=on", "-global", "ICH9-LPC.disable_s3=1", *firmware)
    return Machine("efi", 2, "256M", image=str(image), display="std", board="q35,smm=on", extra=secure)


@pytest.mark.metal
def test_secure_boot_starts_what_our_own_key_signed(kernel, tmp_path):
    run(secured(kernel, tmp_path, "own"), kernel, SECONDS).ended().says(*HANDED_OVER)


@pytest.mark.metal
@pytest.mark.parametrize("signer", ["other", None])
def test_secure_boot_refuses_what_it_did_not_sign(kernel, tmp_path, signer):
    with Guest(secured(kernel, tmp_path, signer), kernel) as guest:
        assert guest.wait_for(r"BdsDxe: failed to load Boot\d+ .*: Access Denied", SECONDS), "\n".join(guest.lines)
    assert not any("ASHLAR-BEGIN" in line for line in guest.lines)


def test_the_image_has_a_table_with_one_system_partition(kernel, tmp_path):
    image = make_image(Machine("efi"), kernel, tmp_path / "ashlar.img").read_bytes()
    kind, first, sectors = struct.unpack_from("<4xB3xII", image, 446)
    assert (image[510:512], kind, first * 512) == (b"\x55\xaa", 0xEF, 1 << 20) and not any(image[462:510])
    volume = image[1 << 20 :]
    assert sectors * 512 == len(volume) and struct.unpack_from("<I", volume, 28)[0] == first  # which its boot sector repeats


def test_the_program_is_marked_for_revocation_and_the_same_whenever_it_is_built(kernel, tmp_path):
    made = [make_image(Machine("efi", cmdline=CASE), kernel, tmp_path / f"{n}.EFI") for n in range(2)]
    assert made[0].read_bytes() == made[1].read_bytes()
    shown = subprocess.run(["objdump", "-s", "-j", ".sbat", str(made[0])], capture_output=True, text=True, check=True).stdout
    assert "sbat,1,SBAT" in shown
