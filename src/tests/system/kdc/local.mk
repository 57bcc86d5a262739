# SPDX-License-Identifier: BSD-2-Clause
# A Kerberos realm on loopback, and tests with real tickets.

EXTRA_DIST += src/tests/system/kdc/kdc.sh src/tests/system/kdc/programs.sh

check_tests += src/tests/system/kdc/test_renewal

check_PROGRAMS += src/tests/system/kdc/ticket_forms
src_tests_system_kdc_ticket_forms_SOURCES = src/tests/system/kdc/ticket_forms.c

check_scripts += src/tests/system/kdc/kdc-forms.sh
check_scripts += src/tests/system/kdc/kdc-long.sh
check_scripts += src/tests/system/kdc/kdc-renew.sh
check_scripts += src/tests/system/kdc/kdc-rig.sh
check_scripts += src/tests/system/kdc/kdc-rxfsd.sh
check_scripts += src/tests/system/kdc/kdc-rxgk.sh
check_scripts += src/tests/system/kdc/kdc-rxperf.sh
