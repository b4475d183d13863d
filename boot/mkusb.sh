#!/bin/sh
# Write the image to a USB stick, and refuse everything that is not one: mkusb.sh IMAGE DEVICE
#
# Refused: what is no whole disk, what is mounted or in use in any part, what is neither removable nor on USB, what holds
# the running system, what is write-protected, too small or has no sectors of 512 bytes. What is left is shown with model
# and size, and is written only after its name has been typed. Then it is read back and compared.
set -eu

die() {
	echo "usb: $*" >&2
	exit 1
}

[ $# -eq 2 ] || die "usage: $0 IMAGE DEVICE    (as in: make usb DEV=/dev/sdX)"
image=$1 device=$2

# Names of what the running system is on: partition, disk, and what lies between.
of_system() {
	lsblk -sno NAME "$(findmnt -no SOURCE / 2>/dev/null | sed 's/\[.*//')" 2>/dev/null | tr -cd 'A-Za-z0-9\n'
}

# Disks with a medium. Compressed RAM and RAM disks call themselves disks, too.
list_disks() {
	lsblk -drno NAME,TYPE,RM,SIZE,TRAN,MODEL 2>/dev/null | awk -F '[ ]' -v system_disks=" $(of_system | tr '\n' ' ')" '
	$2 != "disk" || $1 ~ /^z?ram/ || $4 ~ /^0B?$/ { next }
	{
		stick = ($3 == 1 || $5 == "usb")
		what = index(system_disks, " " $1 " ") ? "holds the running system" : stick ? "may be the stick" : "no stick"
		sticks += what ~ /^may/
		gsub(/\\x20/, " ", $6)
		printf "       %-14s %7s  %-6s %-24s %s\n", "/dev/" $1, $4, $5, $6, what
	}
	END { if (!sticks) print "     None of these is a USB stick." }'
}

[ -n "$device" ] || die "say which: make usb DEV=/dev/sdX; these are the disks here:
$(list_disks)"

# One property of the disk itself, then of all its parts.
of_disk() {
	lsblk -bdno "$1" "$device" 2>/dev/null | tr -s ' ' | sed 's/^ //; s/ $//'
}

of_parts() {
	lsblk -no "$1" "$device" 2>/dev/null | grep -v '^ *$' | sort -u | tr '\n' ' ' || true
}

type=$(of_disk TYPE)
[ -n "$type" ] || die "$device is no disk that this system knows"
[ "$type" = disk ] || die "$device is a $type; the whole disk is needed, as in /dev/sdb"
[ "$(of_disk RM)" = 1 ] || [ "$(of_disk TRAN)" = usb ] || die "$device is neither removable nor on USB: not touched"
[ "$(of_disk RO)" = 0 ] || die "$device is write-protected"

mounted=$(of_parts MOUNTPOINTS)
[ -z "$mounted" ] || die "$device is in use: $mounted(unmount it first)"
for disk in $(of_system); do
	[ "/dev/$disk" != "$device" ] || die "$device holds the running system: not touched"
done
used=$(lsblk -no TYPE "$device" | grep -Ev '^(disk|part) *$' | sort -u | tr '\n' ' ' || true)
[ -z "$used" ] || die "$device is part of something else: $used"

sector=$(of_disk LOG-SEC)
[ "${sector:-512}" = 512 ] || die "$device has sectors of $sector bytes; the image needs 512: firmware would find no partition in it"

size=$(of_disk SIZE)
need=$(wc -c < "$image")
[ "$size" -ge "$need" ] || die "$device has $size bytes, the image $need"

echo "  $device   $(of_disk VENDOR) $(of_disk MODEL)   $((size / 1000000)) MB"
echo "  Everything on it will be lost."
printf 'Type its name to write it (%s), anything else to stop: ' "$device"
read -r answer || answer=
[ "$answer" = "$device" ] || die "nothing was written"

dd if="$image" of="$device" bs=4M conv=fsync 2>/dev/null || die "writing failed: is this root? (sudo make usb DEV=$device)"
cmp -n "$need" "$image" "$device" || die "what the stick holds is not what was written: it is broken"
cat <<END
Written and compared. On the machine: choose the stick in the boot menu (often F12, F11 or Esc).
  Secure Boot   must be off: the image is not signed. In the firmware's set-up: Security or Boot, "Secure Boot", Disabled.
  Output        goes to the screen and to the first serial port, 115200 8N1. The last line is ASHLAR-END verdict=...
END
