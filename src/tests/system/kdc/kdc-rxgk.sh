#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# rxgk by Kerberos in the programs: rxperf, afscp and rxfsd exchange tickets for tokens; refusals give the reason.

. "${top_srcdir:-.}/src/tests/system/kdc/programs.sh"

kdc_principal alice -pw secret
kdc_principal robot
kdc_keytab "$dir/robot.keytab" robot "$(kdc_enctype 18)"
kdc_principal afs/$KDC_CELL
kdc_principal afs-rxgk/_afs.$KDC_CELL
kdc_keytab "$dir/gk.keytab" afs-rxgk/_afs.$KDC_CELL "$(kdc_enctype 18)"
kdc_keytab "$dir/kad.keytab" afs/$KDC_CELL "$(kdc_enctype 18)"
cat "$dir/gk.keytab" > "$dir/both.keytab"
tail -c +3 "$dir/kad.keytab" >> "$dir/both.keytab"
gk="-x rxgk --cell $KDC_CELL"

# -- rxperf: each level, from a cache and with the client's own key. --
perf --keytab "$dir/both.keytab" --cell $KDC_CELL
calls_not 'get some with kinit' -c rpc $gk
kdc_login alice secret
for level in clear auth crypt; do
	calls -c recv -b 300K --verify $gk --level $level
	calls -c send -b 300K $gk --level $level
	calls -c rpc -T 5 -S 3000 -R 5000 $gk --level $level
done
calls -c rpc -x rxkad --cell $KDC_CELL
calls -c rpc $gk --keytab "$dir/robot.keytab"
klist > "$dir/list"
grep -q "Default principal: alice@" "$dir/list" || kdc_fail "another client's key changed the ticket cache"

# -- Refusals and their messages. --
calls_not 'not found in Kerberos database.*check the cell' -c rpc -x rxgk --cell nowhere.test
calls_not "$dir/none" -c rpc $gk --keytab "$dir/none"
kdc_login alice secret -l 1s -c "FILE:$dir/short"
while klist -s "$dir/short"; do sleep 0.1; done
KRB5CCNAME="FILE:$dir/short" calls_not 'expired.*kinit' -c rpc $gk
KRB5CCNAME="FILE:$dir/short" calls_not 'expired.*kinit' -c rpc -x rxkad --cell $KDC_CELL
# The cache records the clock offset of this machine: a client two hours ahead of the server.
kvno afs-rxgk/_afs.$KDC_CELL > /dev/null || kdc_fail "kvno"
cp "$dir/cc" "$dir/ahead"
printf '\000\000\034\040' | dd of="$dir/ahead" bs=1 seek=8 conv=notrunc 2> /dev/null
KRB5CCNAME="FILE:$dir/ahead" calls_not 'clock.*NTP' -c rpc $gk
# A server with another key of that number, with that of another cell, and without keys.
kdc_principal wrong/key
kdc_keytab "$dir/wrong.keytab" wrong/key "$(kdc_enctype 18)"
perf --keytab "$dir/both.keytab" --cell $KDC_CELL --level crypt
calls -c rpc $gk
calls_not 'level' -c rpc $gk --level auth
perf --keytab "$dir/kad.keytab" --cell $KDC_CELL
calls_not 'issues no rxgk tokens' -c rpc $gk
# The key changes while a server runs: a client with a new ticket gets an error until the keytab has the new key.
perf --keytab "$dir/gk.keytab" --cell $KDC_CELL
calls -c rpc $gk
kdc_keytab "$dir/new.keytab" afs-rxgk/_afs.$KDC_CELL "$(kdc_enctype 20)"
calls -c rpc $gk
kdc_login alice secret
calls_not "server does not accept the ticket.*server's keytab" -c rpc $gk
tail -c +3 "$dir/new.keytab" >> "$dir/gk.keytab"
calls -c rpc $gk
# An unknown realm.
kdc_realm OTHER.TEST
kdc_principal bob@OTHER.TEST -pw secret
kdc_login bob@OTHER.TEST secret
calls_not 'afs-rxgk\|realm' -c rpc $gk

# -- rxfsd and afscp: on every port, identities, a required level. --
mkdir -p "$dir/export/pub" "$dir/export/own"
head -c 300000 /dev/urandom > "$dir/export/pub/file"
head -c 200000 /dev/urandom > "$dir/export/own/plan"
kdc_login alice secret
fs --keytab "$dir/gk.keytab" --cell $KDC_CELL --require crypt --allow "alice@$KDC_REALM own" --allow 'any-authenticated pub'
gets own/plan -v $gk
grep -q "identity at the file server: alice@$KDC_REALM (rxgk, crypt)" "$dir/err" || { cat "$dir/err"; kdc_fail "afscp -v"; }
logged "is alice@$KDC_REALM (rxgk, crypt)"
gets pub/file $gk --keytab "$dir/robot.keytab"
gets_not 'permission\|denied' own/plan $gk --keytab "$dir/robot.keytab"
gets_not 'level' own/plan $gk --level auth
gets_not 'permission\|denied' own/plan
gets_not 'unknown service key' own/plan -x rxkad --cell $KDC_CELL
for p in $(sed -n 's/^listening fs [^ ]*:\([0-9]*\) vl [^ ]*:\([0-9]*\) vol [^ ]*:\([0-9]*\)$/\1 \2 \3/p' "$dir/out"); do
	port=$p
	# That port issues the token; the service of rxperf does not exist there.
	calls_not 'unknown service' -c rpc $gk
	grep -q 'issues no rxgk tokens' "$dir/client" && kdc_fail "no tokens at port $p"
done

# -- Names with dots mean the same by either class: without the option john/doe is the user john.doe, with it john.doe. --
rxvol=$build/src/rxvol/rxvol rxpt=$build/src/rxpt/rxpt
if [ -x "$rxvol" ] && [ -x "$rxpt" ]; then
	cat "$dir/gk.keytab" > "$dir/now.keytab"
	tail -c +3 "$dir/kad.keytab" >> "$dir/now.keytab"
	kdc_principal john.doe -pw secret
	kdc_principal john/doe -pw secret
	{ "$rxvol" -S "$dir/store" create vol --acl 'system:anyuser l' && "$rxpt" -S "$dir/store" adduser john.doe &&
		"$rxvol" -S "$dir/store" acl vol john.doe write; } > "$dir/made" 2>&1 || { cat "$dir/made"; kdc_fail "a store"; }
	# dotted WHO MAY OPTION...: whether that principal has the rights of the user, by both classes; the rest may list
	echo text > "$dir/text"
	dotted() {
		kdc_login "$1" secret
		for class in rxkad rxgk; do
			"$afscp" -q -s "$at" -x $class --cell $KDC_CELL ls vol:/ > "$dir/got" 2> "$dir/err" ||
				{ cat "$dir/err"; kdc_fail "$1 by $class may not do what anyone may"; }
			may=no
			"$afscp" -q -s "$at" -x $class --cell $KDC_CELL put "$dir/text" "vol:$class" > "$dir/got" 2> "$dir/err" && may=yes
			[ $may = "$2" ] || { cat "$dir/err"; kdc_fail "$1 by $class, writing: $may"; }
		done
	}
	for option in '' --allow-dotted-principals; do
		started "$rxfsd" --store "$dir/store" --protection "$dir/store" --pt-port 0 --port 0 --vl-port 0 --drain 0 \
			--keytab "$dir/now.keytab" --cell $KDC_CELL $option
		at=$(sed -n 's/^listening fs [^ ]*:\([0-9]*\) vl [^ ]*:\([0-9]*\) .*/127.0.0.1:\2:\1/p' "$dir/out")
		dotted john.doe "$([ -n "$option" ] && echo yes || echo no)"
		dotted john/doe "$([ -n "$option" ] && echo no || echo yes)"
	done
fi
echo "rxgk by Kerberos: rxperf, rxfsd, afscp; expired, clock, key, cell, realm"
