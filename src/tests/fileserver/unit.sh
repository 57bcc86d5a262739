#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Checks the systemd unit without a running systemd (src/tests/packaging/packages/manager does the rest).

export LC_ALL=C
set -u
dir=$(mktemp -d "${TMPDIR:-/tmp}/rxfsd-unit-XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT
status=0
fail() {
	echo "FAIL: $*"
	status=1
}

# The programs at their installed paths, whatever this build's directories are.
mkdir "$dir/sbin" "$dir/etc" && ln -s "$top_builddir/src/fileserver/rxfsd" "$dir/sbin/rxfsd" || exit 99
unit=$dir/rxfsd.service
sed "s|@sbindir@|$dir/sbin|g; s|@sysconfdir@|$dir/etc|g" "$top_srcdir/src/fileserver/system/rxfsd.service.in" > "$unit"

# value NAME: the value of the last such line.
value() { sed -n "s/^$1=//p" "$unit" | tail -n 1; }

# The unit runs no other program than rxfsd: a minimal system has no /bin/kill.
grep '^Exec' "$unit" | grep -v "^Exec[A-Za-z]*=$dir/sbin/rxfsd " && fail "a line runs another program than rxfsd"
[ "$(value ExecReload)" = "$dir/sbin/rxfsd --reload \$MAINPID" ] || fail "reload does not wait for its result"
# RestartPreventExitStatus does not apply to ExecStartPre, so its failure would cause a restart.
! grep '^ExecStartPre' "$unit" || fail "RestartPreventExitStatus does not hold for ExecStartPre"
[ "$(value RestartPreventExitStatus)" = 2 ] || fail "a wrong configuration would be started again and again"
# systemd gives up after five starts in ten seconds.
[ "$(value RestartSec)" -ge 3 ] || fail "a port that is taken for some seconds would fail the unit permanently"

if ! command -v systemd-analyze > /dev/null 2>&1; then
	echo "left out: systemd-analyze was not found (Debian package: systemd)"
elif [ ! -d /run/systemd ] && [ ! -w /run ]; then
	echo "left out: systemd-analyze needs /run/systemd, and this user cannot create it"
else
	# systemd-analyze also loads units of the system and reports their faults as FILE:LINE.
	systemd-analyze verify --man=no --recursive-errors=no "$unit" > "$dir/said" 2>&1 ||
		fail "systemd-analyze: $(cat "$dir/said")"
	sed -i '\#^/[^:]*/systemd/system/[^:]*:[0-9]*: #d' "$dir/said"
	[ ! -s "$dir/said" ] || fail "systemd-analyze complains: $(cat "$dir/said")"
fi
exit $status
