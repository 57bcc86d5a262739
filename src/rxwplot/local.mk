# SPDX-License-Identifier: BSD-2-Clause
# rxwplot: pictures of packet traces.

# Python 3, with its standard library alone.
EXTRA_DIST += src/rxwplot/rxwplot.py
bin_SCRIPTS += src/rxwplot/rxwplot
CLEANFILES += src/rxwplot/rxwplot
src/rxwplot/rxwplot: src/rxwplot/rxwplot.py $(top_builddir)/config.status
	$(AM_V_GEN)$(MKDIR_P) src/rxwplot && sed 's/[@]VERSION[@]/$(VERSION)/' '$(srcdir)/src/rxwplot/rxwplot.py' > $@.tmp && \
		chmod 755 $@.tmp && mv $@.tmp $@
dist_man_MANS += doc/man/rxwplot.1
