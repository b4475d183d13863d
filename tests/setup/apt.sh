#!/bin/sh
# apt with folders of its own: apt.sh FOLDER 'RELEASE ...' TOOL WORDS... runs TOOL (apt-get, apt-cache).
#
# A RELEASE of Debian's is bookworm, trixie-backports, own for that of this system, or source:bookworm for its sources. All come from the
# mirror of this system's apt sources, and signatures are checked with its keys. No package, source or list of the system changes. Lists
# are fetched when FOLDER has none of these releases. Exit status: that of TOOL, or 1 and the reason on stderr.
set -u

folder=$1 releases=$2
shift 2

fail() {
	echo "$*" >&2
	exit 1
}

[ -z "${ASHLAR_OFFLINE:-}" ] || fail "no network (ASHLAR_OFFLINE is set)"
command -v apt-get >/dev/null 2>&1 || fail "this system has no apt"
codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
uri=$(apt-get indextargets --no-release-info --format '$(CREATED_BY)|$(RELEASE)|$(COMPONENT)|$(REPO_URI)' 2>/dev/null |
	awk -F '|' -v release="$codename" '$1 == "Packages" && $2 == release && $3 == "main" { print $4; exit }')
[ -n "$uri" ] || fail "apt has no source for $codename main"
key=/usr/share/keyrings/debian-archive-keyring.gpg
signed=
[ -r "$key" ] && signed="[signed-by=$key] "

private() {
	tool=$1
	shift
	"$tool" -q -o "Dir::Etc::SourceList=$folder/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o "Dir::State::Lists=$folder/lists" -o "Dir::Cache=$folder/cache" -o APT::Sandbox::User="$(id -un)" \
		-o Acquire::Languages=none -o Acquire::http::Timeout=30 -o APT::Update::Post-Invoke-Success::= "$@"
}

mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial" || exit 1
folder=$(cd "$folder" && pwd)
for release in $releases; do
	kind=deb name=${release#source:}
	[ "$name" = "$release" ] || kind=deb-src
	[ "$name" = own ] && name=$codename
	[ "$name" = own-backports ] && name=$codename-backports
	echo "$kind $signed$uri $name main"
done | sort -u >"$folder/sources.new"
if ! cmp -s "$folder/sources.new" "$folder/sources.list"; then
	cp "$folder/sources.new" "$folder/sources.list"
	private apt-get update >"$folder/log" 2>&1 || echo "some lists could not be fetched: $(tail -n 1 "$folder/log")" >&2
fi
private "$@"
