#!/bin/sh
# Make one hybrid image that boots from CD and from a USB stick, under BIOS and under UEFI.
#
#   boot/mkiso.sh KERNEL CMDLINE OUT.iso [SECONDS [MODULE]]
#
# SECONDS: how long the menu waits for a choice (0: not at all). MODULE: a file that the first entry and the monitor's
# pass to the kernel, such as the program of `make run PROGRAM=`; it becomes /program.cpio. "": none.
#
# Needs grub-mkrescue with the modules of both platforms (grub-pc-bin, grub-efi-amd64-bin), xorriso and mtools. To write
# it to a stick: dd if=OUT.iso of=/dev/sdX bs=4M conv=fsync. UEFI: Secure Boot must be off, the image is not signed.
set -eu

if [ $# -lt 3 ] || [ $# -gt 5 ]; then
	echo "usage: $0 KERNEL CMDLINE OUT.iso [SECONDS [MODULE]]" >&2
	exit 2
fi
kernel=$1 cmdline=$2 out=$3 timeout=${4:-0} module=${5:-}
here=$(dirname "$0")
tree=$(mktemp -d)
log=$(mktemp) # not in the tree: it is being packed while it is written
trap 'rm -rf "$tree" "$log"' EXIT
trap 'exit 1' HUP INT TERM

# GRUB's script language sees the command line. Outside double quotes every character that may mean something to it gets
# a backslash; a quoted part becomes single-quoted, where nothing does. GRUB then hands over "run=pool 2M" for
# run="pool 2M", which the kernel reads as the same word. A backslash before a quote or a backslash takes that character
# as it is, here as in the kernel; GRUB inserts these backslashes again. The text travels in the environment, where awk
# changes nothing in it.
CMDLINE=$cmdline TIMEOUT=$timeout
TITLE='resize a pool of huge pages in four modes'
[ -z "$cmdline" ] || TITLE='the command line this image was made with'
export CMDLINE TIMEOUT TITLE
mkdir -p "$tree/boot/grub"
# GRUB reads all sections of the file into memory, and the debugger does not read this file. Symbols stay, for backtraces.
objcopy --strip-debug "$kernel" "$tree/boot/ashlar.elf"
[ -z "$module" ] || cp "$module" "$tree/program.cpio"
awk 'BEGIN {
		text = ENVIRON["CMDLINE"]
		for (i = 1; i <= length(text); i++) {
			c = substr(text, i, 1)
			plain = c == "\\" && index("\\\"\047", substr(text, i + 1, 1)) && i < length(text)
			if (plain)
				c = substr(text, ++i, 1)
			if (c == "\"" && !plain)
				{ out = out "\047"; quoted = !quoted }
			else if (c == "\047")
				out = out (quoted ? "\047\\\047\047" : "\\\047")
			else if (quoted || c ~ /[A-Za-z0-9_=.,:\/+@% -]/)
				out = out c
			else
				out = out "\\" c
		}
		if (quoted)
			out = out "\047"
	}
	(at = index($0, "@CMDLINE@")) && !/^#/ { $0 = substr($0, 1, at - 1) out substr($0, at + 9) }
	{ sub(/@TIMEOUT@/, ENVIRON["TIMEOUT"]); sub(/@TITLE@/, ENVIRON["TITLE"]); print }' "$here/grub.cfg" > "$tree/boot/grub/grub.cfg"

if ! grub-mkrescue -o "$out.new" "$tree" --locales= --fonts=ascii --themes= -- -volid ASHLAR \
	> "$log" 2>&1; then
	cat "$log" >&2
	rm -f "$out.new"
	exit 1
fi
# Some BIOSes start no stick without an active partition. The only entry is the GPT's protective one, whose flag UEFI ignores
# (UEFI 2.10, 5.2.3).
printf '\200' | dd of="$out.new" bs=1 seek=446 conv=notrunc 2> "$log"
mv "$out.new" "$out"
