# SPDX-License-Identifier: BSD-2-Clause
# Documents and man pages: dist_doc_DATA += doc/NAME.md, dist_man_MANS += doc/man/NAME.SECTION.

dist_doc_DATA += doc/soname.md doc/architecture.md
