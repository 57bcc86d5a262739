#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# rxwire-probes(7) and the library agree: the notes of the ELF file name exactly the probes of the page, each with the
# documented number of arguments at every place. The scripts of contrib/bpftrace use only documented probes and
# arguments.

top=${top_srcdir:-$(dirname "$0")/../../../..}
build=${top_builddir:-.}
READELF=${READELF:-readelf}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
status=0
fail() { echo "FAIL: $*"; status=1; }

# "NAME ARGUMENTS" of each probe, from the page.
sed -n 's/^\.BI \([a-z_]*\)( *"\{0,1\}\([a-z, ]*\)"\{0,1\} *)$/\1 \2/p' "$top/doc/man/rxwire-probes.7" |
	awk '{ print $1, gsub(/,/, ",") + 1 }' | LC_ALL=C sort > "$dir/page"
n=$(wc -l < "$dir/page")
[ "$n" -ge 15 ] || fail "found only $n probes in rxwire-probes(7)"
awk '$2 > 6 { print; bad = 1 } END { exit bad }' "$dir/page" || fail "more than six arguments"

for script in "$top"/contrib/bpftrace/*.bt; do
	[ -x "$script" ] || fail "$script is not executable"
	grep -q 'usage: ' "$script" || fail "$script has no usage line"
	# Each probe that it attaches to, with the highest argument that it uses.
	awk '
		/^usdt:/ { name = $1; sub(/.*:/, "", name); sub(/,$/, "", name); print name, 0 }
		/^[A-Z]|^interval/ { name = "" }
		name != "" {
			line = $0
			while (match(line, /arg[0-9]+/)) {
				print name, substr(line, RSTART + 3, RLENGTH - 3) + 1
				line = substr(line, RSTART + RLENGTH)
			}
		}' "$script" | sort -u > "$dir/used"
	[ -s "$dir/used" ] || fail "found no probe in $script"
	while read -r name arguments; do
		known=$(sed -n "s/^$name //p" "$dir/page")
		if [ -z "$known" ]; then
			fail "$script: rxwire-probes(7) has no $name"
		elif [ "$arguments" -gt "$known" ]; then
			fail "$script: $name has $known arguments, not $arguments"
		fi
	done < "$dir/used"
done
[ $status -eq 0 ] || exit 1

if ! grep -q '^#define RXW_HAVE_SDT 1' "$build/config.h"; then
	echo "SKIP: built without probes (no sys/sdt.h; Debian package: systemtap-sdt-dev)"
	exit 77
fi
if ! command -v "$READELF" > /dev/null; then
	echo "SKIP: no $READELF"
	exit 77
fi
# The notes of the shared library or of the objects in the static one.
for library in "$build/src/rx/.libs/librxwire.so" "$build/src/rx/.libs/librxwire.a"; do
	[ -f "$library" ] || continue
	"$READELF" -n "$library" 2> /dev/null | awk '
		$1 == "Provider:" { ours = $2 == "rxwire" }
		$1 == "Name:" { name = $2 }
		$1 == "Arguments:" && ours { print name, NF - 1 }' | LC_ALL=C sort -u > "$dir/notes"
	# With -flto an archive has no code yet, and no notes.
	if [ ! -s "$dir/notes" ] && "$READELF" -SW "$library" 2> /dev/null | grep -q '[.]gnu[.]lto_'; then
		echo "left out: ${library##*/}, whose code is generated when linking"
		continue
	fi
	if ! cmp -s "$dir/page" "$dir/notes"; then
		LC_ALL=C comm -23 "$dir/page" "$dir/notes" | sed 's/^/in rxwire-probes(7) only: /'
		LC_ALL=C comm -13 "$dir/page" "$dir/notes" | sed "s|^|in ${library##*/} only: |"
		fail "the probes of ${library##*/} are not those of rxwire-probes(7)"
	fi
	what="$what ${library##*/}"
done
[ -n "$what" ] || { echo "SKIP: this build has no librxwire"; exit 77; }
[ $status -ne 0 ] || echo "$n probes agree with their page:$what"
exit $status
