#!/bin/sh
# QEMU 10 beside an older system QEMU: qemu10.sh [DIR] unpacks it in DIR/qemu10 and prints the path of the emulator.
#
# QEMU before 10 emulates no x2APIC without KVM, hence at most 255 CPUs. Where the system's QEMU is older, the one from
# the distribution's own backports is fetched with private apt directories and unpacked with dpkg -x: the mirror is
# the one in this system's apt sources, signatures are checked with its keys, and no system package, source or list is
# changed. Exit status: 0 and a path, or 1 and the reason on stderr.
set -u

dir=${1:-build/tools}
mkdir -p "$dir" || exit 1
dir=$(cd "$dir" && pwd)
root=$dir/qemu10

fail() {
	echo "QEMU 10 cannot be had: $*" >&2
	exit 1
}

major() {
	"$1" --version 2>/dev/null | sed -n '1s/.*version \([0-9]*\).*/\1/p'
}

system=$(command -v qemu-system-x86_64)
if [ -n "$system" ] && [ "$(major "$system")" -ge 10 ] 2>/dev/null; then
	echo "$system"
	exit 0
fi
if [ -x "$root/qemu" ] && [ "$(major "$root/qemu")" -ge 10 ] 2>/dev/null; then
	echo "$root/qemu"
	exit 0
fi

[ -n "${ASHLAR_OFFLINE:-}" ] && fail "no network (ASHLAR_OFFLINE is set) and none unpacked in $root"
command -v apt-get >/dev/null 2>&1 || fail "this system has no apt and its own QEMU is older than 10"
codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
[ -n "$codename" ] || fail "/etc/os-release names no release"

uri=$(apt-get indextargets --no-release-info --format '$(CREATED_BY)|$(RELEASE)|$(COMPONENT)|$(REPO_URI)' 2>/dev/null |
	awk -F '|' -v release="$codename" '$1 == "Packages" && $2 == release && $3 == "main" { print $4; exit }')
[ -n "$uri" ] || fail "apt has no source for $codename main"
key=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$key" ] && options="[signed-by=$key] "

work=$dir/qemu10.work
rm -rf "$work"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/deb" "$work/root"
trap 'rm -rf "$work"' EXIT
echo "deb ${options:-}$uri $codename-backports main" >"$work/sources.list"

private_apt() {
	apt-get -q -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User="$(id -un)" \
		-o Acquire::Languages=none -o Acquire::http::Timeout=30 -o APT::Update::Post-Invoke-Success::= "$@"
}

echo "Fetching QEMU 10 from $codename-backports into $root (nothing on the system changes) ..." >&2
private_apt update >"$work/log" 2>&1 || fail "$(tail -n 1 "$work/log")"
for package in qemu-system-x86 qemu-system-common qemu-system-data seabios; do
	(cd "$work/deb" && private_apt download "$package/$codename-backports") >>"$work/log" 2>&1 ||
		fail "$(tail -n 1 "$work/log")"
done
for deb in "$work"/deb/*.deb; do
	dpkg -x "$deb" "$work/root" || fail "dpkg could not unpack $deb"
done

# A wrapper, so that its own data and modules are found; the firmware of other packages comes from the system. It also
# looks into the system's module folder, refuses what the older QEMU left there, and says so: no news.
cat >"$work/root/qemu" <<END
#!/bin/bash
export QEMU_MODULE_DIR="$root/usr/lib/x86_64-linux-gnu/qemu"
exec "$root/usr/bin/qemu-system-x86_64" -L "$root/usr/share/qemu" -L "$root/usr/share/seabios" "\$@" \\
	2> >(grep -v -e 'failed to initialize module: /usr/lib/' -e 'Only modules from the same build' >&2)
END
chmod +x "$work/root/qemu"
rm -rf "$root"
mv "$work/root" "$root"
version=$(major "$root/qemu")
if [ "${version:-0}" -lt 10 ]; then
	why=$("$root/qemu" --version 2>&1 | tail -n 1)
	rm -rf "$root"
	fail "$codename-backports has: $why"
fi
echo "$root/qemu"
