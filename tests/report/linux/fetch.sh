#!/bin/sh
# Kernels of the distribution to measure beside: fetch.sh [DIR] unpacks them and a static busybox in DIR/linux, nothing is installed,
# and prints a line "VERSION KERNEL INITRD" for each that is there.
#
# Wanted: the newest 6.1 (before S0's batching) and the newest 6.12 (with it), in the small build for virtual machines; in Debian they
# belong to two releases, so both are asked for, on the mirror of this system's apt sources, with private apt directories and
# the system's keys. What cannot be had is named on stderr. Exit status: 0 if there is at least one, else 1.
set -u

here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-build/tools}
mkdir -p "$dir/linux" || exit 1
dir=$(cd "$dir/linux" && pwd)
series="6.1 6.12"

say() {
	echo "bench-linux: $*" >&2
}

# Private apt: lists, cache and sources under $work.
private() {
	tool=$1
	shift
	"$tool" -q -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User="$(id -un)" \
		-o Acquire::Languages=none -o Acquire::http::Timeout=30 -o APT::Update::Post-Invoke-Success::= "$@"
}

# The sources of both releases on this system's mirror, or a reason.
sources() {
	command -v apt-get >/dev/null 2>&1 || { echo "this system has no apt"; return 1; }
	codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	uri=$(apt-get indextargets --no-release-info --format '$(CREATED_BY)|$(RELEASE)|$(COMPONENT)|$(REPO_URI)' 2>/dev/null |
		awk -F '|' -v release="$codename" '$1 == "Packages" && $2 == release && $3 == "main" { print $4; exit }')
	[ -n "$uri" ] || { echo "apt has no source for $codename main"; return 1; }
	key=/usr/share/keyrings/debian-archive-keyring.gpg
	signed=
	[ -r "$key" ] && signed="[signed-by=$key] "
	for release in bookworm trixie "$codename"; do
		echo "deb $signed$uri $release main"
	done | sort -u >"$work/sources.list"
}

newest() {
	private apt-cache search --names-only "^linux-image-$1\\.[0-9].*-cloud-amd64\$" 2>/dev/null |
		awk '{ print $1 }' | grep -v -e dbg -e unsigned | sort -V | tail -n 1
}

fetch() {
	(cd "$work" && private apt-get download "$1") >>"$work/log" 2>&1 && dpkg -x "$work/$1"_*.deb "$2" && rm -f "$work/$1"_*.deb
}

fetch_all() {
	why=$(sources) || { say "no kernels: $why"; return; }
	say "fetching kernels into $dir (nothing on the system changes) ..."
	private apt-get update >"$work/log" 2>&1 || say "some lists could not be fetched: $(tail -n 1 "$work/log")"
	[ -x "$dir/busybox" ] || {
		fetch busybox-static "$work/busybox" && cp "$(find "$work/busybox" -type f -path '*/bin/busybox')" "$dir/busybox"
	} || { say "no busybox: $(tail -n 1 "$work/log")"; return; }
	for one in $series; do
		ls "$dir/$one"/boot/vmlinuz-* >/dev/null 2>&1 && continue
		package=$(newest "$one")
		[ -n "$package" ] || { say "Linux $one cannot be had: no such package"; continue; }
		fetch "$package" "$work/root" && mkdir -p "$dir/$one/boot" && cp "$work"/root/boot/vmlinuz-* "$dir/$one/boot/" ||
			say "Linux $one cannot be had: $(tail -n 1 "$work/log")"
		rm -rf "$work/root"
	done
}

have() {
	[ -x "$dir/busybox" ] && for one in $series; do ls "$dir/$one"/boot/vmlinuz-* >/dev/null 2>&1 || return 1; done
}

# A busybox, our init and nothing else.
make_initrd() {
	root=$dir/initrd
	rm -rf "$root"
	mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev"
	cp "$dir/busybox" "$root/bin/busybox"
	cp "$here/init" "$root/init"
	chmod 755 "$root/init" "$root/bin/busybox"
	(cd "$root" && find . | "$dir/busybox" cpio -o -H newc 2>/dev/null | gzip -1) >"$dir/initrd.gz"
}

if ! have; then
	if [ -n "${ASHLAR_OFFLINE:-}" ]; then
		say "no network (ASHLAR_OFFLINE is set): only what is unpacked in $dir"
	else
		work=$dir/work
		rm -rf "$work"
		mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
		trap 'rm -rf "$work"' EXIT
		fetch_all
	fi
fi
[ -x "$dir/busybox" ] || exit 1
make_initrd
found=1
for one in $series; do
	for kernel in "$dir/$one"/boot/vmlinuz-*; do
		[ -r "$kernel" ] || continue
		echo "$one $kernel $dir/initrd.gz"
		found=0
	done
done
exit $found
