#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The negotiation service with a real KDC: exchanges tickets of each enctype for tokens, and uses them.

program=${top_builddir:-.}/src/tests/rx/rxgk/negotiate_live
[ -x "$program" ] || { echo "SKIP: negotiate_live was not built (libcheck)"; exit 77; }
. "${top_srcdir:-.}/src/tests/system/kdc/kdc.sh"
kdc_start

service=afs-rxgk/_afs.$KDC_CELL
kdc_principal alice -pw secret
kdc_principal "$service"
status=0
for e in 17 18 19 20; do
	kdc_keytab "$KDC_DIR/rxgk.keytab" "$service" "$(kdc_enctype $e)"
	kdc_login alice secret
	"$program" "$KDC_DIR/rxgk.keytab" "alice@$KDC_REALM" > "$KDC_DIR/log" 2>&1 || status=1
	[ $status -eq 0 ] || { cat "$KDC_DIR/log"; break; }
done
kdc_stop
[ $status -eq 0 ] && echo "tokens for tickets of enctypes 17, 18, 19 and 20"
exit $status
