#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Tickets of a real KDC between client and server of rxperf: each enctype, each level, expiry, renewal, wrong key,
# wrong realm, keys that rotate under load.

. "${top_srcdir:-.}/src/tests/system/kdc/programs.sh"

# again: makes the server read its keys, and waits for its message
again() {
	before=$(grep -c 'reloaded its keys' "$dir/out")
	kill -HUP "$server"
	until [ "$(grep -c 'reloaded its keys' "$dir/out")" -gt "$before" ]; do
		kill -0 "$server" 2> /dev/null || { cat "$dir/log"; kdc_fail "the server ended"; }
		sleep 0.05
	done
}

kdc_principal alice -pw secret
kdc_principal afs/$KDC_CELL
kdc_keytab "$dir/afs.keytab" afs/$KDC_CELL "$(kdc_enctype 18)"
kad="-x rxkad --cell $KDC_CELL"

# -- A ticket is required and used, at each level. The server logs refused clients; no fallback. --
perf --keytab "$dir/afs.keytab" --cell $KDC_CELL
calls_not 'no Kerberos tickets' -c rpc $kad
kdc_login alice secret
for level in clear auth crypt; do
	calls -c recv -b 300K --verify $kad --level $level
	calls -c send -b 300K $kad --level $level
	calls -c rpc -T 10 -S 3000 -R 5000 $kad --level $level
done
calls -c rpc
calls_not 'no ticket for' -c rpc -x rxkad --cell nowhere.test

perf --keytab "$dir/afs.keytab" --cell $KDC_CELL -x rxkad --level crypt
calls -c rpc $kad
calls_not 'level' -c rpc $kad --level auth
calls_not 'level' -c rpc $kad --level clear
calls_not 'class' -c rpc
perf
calls_not 'class' -c rpc $kad

# -- Tickets and session keys of each enctype; the running server reads its new keys and keeps the old ones. --
perf --keytab "$dir/afs.keytab" --cell $KDC_CELL
kdc_login alice secret -c "FILE:$dir/first"
KRB5CCNAME="FILE:$dir/first" calls -c rpc $kad
for e in 17 19 20 18 16 23; do
	kdc_keytab "$dir/afs.keytab" afs/$KDC_CELL "$(kdc_enctype $e)"
	again
	kdc_login alice secret
	calls -c rpc -T 3 -R 5000 $kad
	KRB5CCNAME="FILE:$dir/first" calls -c rpc $kad
done

# -- Rotation under load: existing and new connections. --
# The load has its ticket before the first key changes: one issued between the KDC's and the server's change is
# refused.
kdc_login alice secret -c "FILE:$dir/steady"
KRB5CCNAME="FILE:$dir/steady" calls -c rpc $kad
KRB5CCNAME="FILE:$dir/steady" "$rxperf" client -s 127.0.0.1 -p "$port" -c recv -b 100K -t 4 -T 100000 $kad > "$dir/load.out" 2>&1 &
load=$!
for e in 17 18 17 18; do
	kdc_keytab "$dir/afs.keytab" afs/$KDC_CELL "$(kdc_enctype $e)"
	again
	kdc_login alice secret
	calls -c rpc $kad
done
kill -0 $load 2> /dev/null || { cat "$dir/load.out"; kdc_fail "the load ended while keys rotated"; }
kill -INT $load
wait $load

# A damaged file changes nothing.
cp "$dir/afs.keytab" "$dir/good.keytab"
dd if="$dir/good.keytab" of="$dir/afs.keytab" bs=1 count=100 2> /dev/null
kill -HUP "$server"
until_logged 'the old keys remain in force'
logged 'entry at byte'
calls -c rpc $kad
cp "$dir/good.keytab" "$dir/afs.keytab"

# -- A client's own key instead of a password; a renewed ticket. --
kdc_principal robot
kdc_keytab "$dir/robot.keytab" robot "$(kdc_enctype 18)"
calls -c rpc $kad --keytab "$dir/robot.keytab"
kdc_login alice secret -l 5m -r 1h
kinit -R || kdc_fail "not renewed"
calls -c rpc $kad

# -- A ticket that expires during calls, and one that has expired. --
kdc_login alice secret -l 4s
calls_not 'expired' -c rpc -D 200 $kad
while klist -s; do
	sleep 0.2
done
calls_not 'expired' -c rpc $kad

# -- Another key of the same number, an unknown number, another realm. --
kdc_principal wrong/key
kdc_keytab "$dir/wrong.keytab" wrong/key "$(kdc_enctype 18)"
kdc_principal afs/other.test
kdc_keytab "$dir/other.keytab" afs/other.test "$(kdc_enctype 18)"
kdc_login alice secret
perf --keytab "$dir/wrong.keytab"
calls -c rpc
calls_not 'ticket' -c rpc -x rxkad --cell other.test
calls_not 'unknown service key' -c rpc $kad
kdc_realm OTHER.TEST
kdc_principal bob@OTHER.TEST -pw secret
kdc_principal afs/$KDC_CELL@OTHER.TEST
perf --keytab "$dir/afs.keytab" --cell $KDC_CELL
kdc_login bob@OTHER.TEST secret
calls_not 'key\|ticket' -c rpc $kad
kdc_login alice secret
calls -c rpc $kad

echo "tickets of 6 enctypes, 3 levels, rotation under load, expiry, renewal, wrong key, wrong realm"
