# SPDX-License-Identifier: BSD-2-Clause
# A Kerberos realm on loopback, and tests with real tickets.

EXTRA_DIST += src/tests/kdc/kdc.sh src/tests/kdc/programs.sh

check_tests += src/tests/kdc/test_renewal

check_PROGRAMS += src/tests/kdc/ticket_forms
src_tests_kdc_ticket_forms_SOURCES = src/tests/kdc/ticket_forms.c

check_scripts += src/tests/kdc/kdc-forms.sh
check_scripts += src/tests/kdc/kdc-long.sh
check_scripts += src/tests/kdc/kdc-renew.sh
check_scripts += src/tests/kdc/kdc-rig.sh
check_scripts += src/tests/kdc/kdc-rxfsd.sh
check_scripts += src/tests/kdc/kdc-rxgk.sh
check_scripts += src/tests/kdc/kdc-rxperf.sh
