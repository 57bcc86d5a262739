#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Tests the realm of kdc.sh, which other tests use.

. "${top_srcdir:-.}/src/tests/system/kdc/kdc.sh"
kdc_start

kdc_principal alice -pw secret
kdc_principal afs/$KDC_CELL
for e in 17 18 19 20 16 23; do
	name=$(kdc_enctype $e)
	kdc_keytab "$KDC_DIR/afs.keytab" afs/$KDC_CELL "$name"
	kdc_login alice secret
	kvno afs/$KDC_CELL > "$KDC_DIR/kvno.log" 2>&1 || { cat "$KDC_DIR/kvno.log"; kdc_fail "no ticket of $name"; }
	klist -e > "$KDC_DIR/list" || kdc_fail "klist"
	grep -A2 "afs/$KDC_CELL" "$KDC_DIR/list" | grep -q "$name" ||
		{ cat "$KDC_DIR/list"; kdc_fail "the ticket is not of $name"; }
	# The key in the file decrypts the ticket.
	kvno -k "$KDC_DIR/afs.keytab" afs/$KDC_CELL > "$KDC_DIR/kvno.log" 2>&1 ||
		{ cat "$KDC_DIR/kvno.log"; kdc_fail "the keytab does not open a ticket of $name"; }
done

# A short ticket, and a renewable one.
kdc_login alice secret -l 1s
kdc_login alice secret -l 5m -r 1h
kinit -R || kdc_fail "a renewable ticket is not renewed"
if printf 'wrong\n' | kinit alice > /dev/null 2>&1; then
	kdc_fail "a wrong password was accepted"
fi

kdc_realm OTHER.TEST
kdc_principal bob@OTHER.TEST -pw secret
kdc_principal afs/$KDC_CELL@OTHER.TEST
kdc_login bob@OTHER.TEST secret
kvno afs/$KDC_CELL@OTHER.TEST > "$KDC_DIR/kvno.log" 2>&1 || kdc_fail "the other realm issues no ticket"
kdc_login alice secret
kvno afs/$KDC_CELL > "$KDC_DIR/kvno.log" 2>&1 || kdc_fail "the first realm no longer issues tickets"

d=$KDC_DIR p=$KDC_PID
kdc_stop
[ ! -e "$d" ] || kdc_fail "the folder was not removed"
if kill -0 "$p" 2> /dev/null; then
	kdc_fail "the KDC still runs"
fi
echo "tickets of enctypes 16, 17, 18, 19, 20 and 23; short, renewable, of two realms"
