#!/bin/sh
# Make BOOTX64.EFI, which boots under UEFI without GRUB, or an image of a stick that holds it: a FAT partition.
#
#   boot/mkefi.sh KERNEL CMDLINE OUT.EFI|OUT.img [MODULE]
#
# The command line is built in. In an image it is also in ASHLAR.TXT, which can be edited (boot/efi/handover.h), and MODULE is
# /program.cpio, as on the image that mkiso.sh makes.
set -eu

if [ $# -lt 3 ] || [ $# -gt 4 ]; then
	echo "usage: $0 KERNEL CMDLINE OUT.EFI|OUT.img [MODULE]" >&2
	exit 2
fi
kernel=$1 cmdline=$2 out=$3 module=${4:-}
root=$(dirname "$0")/..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

printf '%s\n' "$cmdline" > "$work/ashlar.txt"
objcopy --strip-debug "$kernel" "$work/kernel.elf"
for source in main.c handover.c leave.S; do
	${CC:-gcc} -std=gnu11 -O2 -ffreestanding -fpie -fvisibility=hidden -mno-red-zone -mgeneral-regs-only -fno-stack-protector \
		-fno-asynchronous-unwind-tables -fcf-protection=none -Wall -Wextra -Werror -I"$root" -Wa,-I"$work" -c "$root/boot/efi/$source" -o "$work/$source.o"
done
ld -m elf_x86_64 -pie --no-dynamic-linker -z noexecstack --build-id=none -T "$root/boot/efi/efi.lds" "$work"/*.o -o "$work/efi.elf"
objcopy -j .text -j .rodata -j .data -j .reloc -j .sbat -O efi-app-x86_64 "$work/efi.elf" "$work/BOOTX64.EFI"

case $out in
*.EFI) mv "$work/BOOTX64.EFI" "$out.new" ;;
*)
	[ -z "$module" ] || echo 'module /program.cpio' >> "$work/ashlar.txt"
	size=$(cat "$work/BOOTX64.EFI" ${module:+"$module"} | wc -c)
	sectors=$((size / 512 * 9 / 8 + 4096)) part=$out.new@@1M
	# An MBR whose one entry is an EFI System partition at 1 MiB: some firmware starts no stick without a table.
	rm -f "$out.new"
	printf "$(printf '\\%03o' 82 72 83 65 0 0 0 254 255 255 239 254 255 255 0 8 0 0 \
		$((sectors & 255)) $((sectors >> 8 & 255)) $((sectors >> 16 & 255)) 0)" | dd of="$out.new" bs=1 seek=440 status=none
	printf '\125\252' | dd of="$out.new" bs=1 seek=510 status=none
	truncate -s $(((2048 + sectors) * 512)) "$out.new"
	mformat -i "$part" -N 41534852 -v ASHLAR -T $sectors -h 255 -s 63 -H 2048 ::
	mmd -i "$part" ::/EFI ::/EFI/BOOT
	mcopy -i "$part" "$work/BOOTX64.EFI" ::/EFI/BOOT/BOOTX64.EFI
	mcopy -i "$part" "$work/ashlar.txt" ::/ASHLAR.TXT
	[ -z "$module" ] || mcopy -i "$part" "$module" ::/program.cpio
	;;
esac
mv "$out.new" "$out"
