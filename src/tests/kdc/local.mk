# SPDX-License-Identifier: BSD-2-Clause
# A Kerberos realm on loopback, and what is proven with real tickets.

EXTRA_DIST += src/tests/kdc/kdc.sh

check_scripts += src/tests/kdc/kdc-renew.sh
check_scripts += src/tests/kdc/kdc-rig.sh
check_scripts += src/tests/kdc/kdc-rxfsd.sh
check_scripts += src/tests/kdc/kdc-rxgk.sh
check_scripts += src/tests/kdc/kdc-rxperf.sh
