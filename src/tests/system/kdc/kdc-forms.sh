#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A KDC's tickets and session keys of each enctype, complete and as their encrypted part alone, at each level.

program=${top_builddir:-.}/src/tests/system/kdc/ticket_forms
. "${top_srcdir:-.}/src/tests/system/kdc/kdc.sh"
[ -x "$program" ] || kdc_skip "ticket_forms was not built"
kdc_start
kdc_principal alice -pw secret
kdc_principal afs/$KDC_CELL
for number in 17 18 19 20 16 23; do
	name=$(kdc_enctype $number)
	kdc_keytab "$KDC_DIR/afs.keytab" afs/$KDC_CELL "$name"
	# The KDC makes no session keys of the last two.
	sessions="18 $number"
	[ $number -ne 16 ] && [ $number -ne 23 ] || sessions=18
	for session in $sessions; do
		kdc_admin $KDC_REALM "setstr afs/$KDC_CELL session_enctypes $(kdc_enctype $session)"
		kdc_login alice secret
		"$program" "$KDC_DIR/afs.keytab" afs/$KDC_CELL alice@$KDC_REALM > "$KDC_DIR/forms" 2>&1 ||
			{ cat "$KDC_DIR/forms"; kdc_fail "a ticket of $name"; }
		for kvno in 213 256; do
			grep -q "^kvno $kvno, ticket of enctype $number, session key of $session\$" "$KDC_DIR/forms" ||
				{ cat "$KDC_DIR/forms"; kdc_fail "kvno $kvno: no ticket of enctype $number with a session key of $session"; }
		done
	done
done
echo "kvno 213 and 256, tickets of enctypes 17, 18, 19, 20, 16 and 23, session keys of the first four"
