# SPDX-License-Identifier: BSD-2-Clause
# Documents and man pages: dist_doc_DATA += doc/NAME.md, dist_man_MANS += doc/man/NAME.SECTION.

dist_doc_DATA += doc/soname.md doc/architecture.md doc/performance.md

dist_man_MANS += \
	doc/man/afscp.1 \
	doc/man/rxperf.1 \
	doc/man/rxwire.conf.5
