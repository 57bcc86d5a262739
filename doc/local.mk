# SPDX-License-Identifier: BSD-2-Clause
# Documents and man pages: dist_doc_DATA += doc/NAME.md, dist_man_MANS += doc/man/NAME.SECTION.

dist_doc_DATA += \
	doc/admin.md \
	doc/architecture.md \
	doc/attacks.md \
	doc/conformance.md \
	doc/developer.md \
	doc/embedding.md \
	doc/networks.md \
	doc/overload.md \
	doc/performance.md \
	doc/porting.md \
	doc/ports.md \
	doc/releases.md \
	doc/scaling.md \
	doc/soname.md \
	doc/tutorial.md

# History and measurements that the documents refer to.
EXTRA_DIST += \
	doc/notes/ports.md

dist_man_MANS += \
	doc/man/rxw_call_begin.3 \
	doc/man/rxw_call_set_callback.3 \
	doc/man/rxw_config_init.3 \
	doc/man/rxw_endpoint_create.3 \
	doc/man/rxw_engine_create.3 \
	doc/man/rxw_keys.3 \
	doc/man/rxw_rpc.3 \
	doc/man/rxw_rxgk.3 \
	doc/man/rxw_rxkad.3 \
	doc/man/rxw_security.3 \
	doc/man/rxw_service_add.3 \
	doc/man/rxw_stats.3 \
	doc/man/rxw_strerror.3 \
	doc/man/rxw_token.3 \
	doc/man/rxw_xdr.3 \
	doc/man/rxwire.3 \
	doc/man/rxwire.7 \
	doc/man/rxwire-probes.7

# `man rxw_call_read` shows the page that has it: each function that a page names is a link to that page.
man_names = awk '/^\.SH NAME/ { on = 1; next } /^\.SH/ { on = 0 } on { sub(/\\-.*/, ""); print }' "$$page" | \
	tr -c 'a-z0-9_' '\n' | grep '^rxw_'
install-data-hook:
	@for page in $(srcdir)/doc/man/rxw*.3; do \
		base=`basename "$$page"`; \
		test -e "$(DESTDIR)$(man3dir)/$$base" || continue; \
		for name in `$(man_names)`; do \
			test "$$name.3" = "$$base" || \
				ln -sf "$$base" "$(DESTDIR)$(man3dir)/$$name.3" || exit 1; \
		done; \
	done
uninstall-hook:
	@for page in $(srcdir)/doc/man/rxw*.3; do \
		for name in `$(man_names)`; do rm -f "$(DESTDIR)$(man3dir)/$$name.3"; done; \
	done

# `make html`: documents and manual as pages in html/ of the build folder, by cmark-gfm and mandoc.
EXTRA_DIST += doc/make-html
html-local:
	$(PYTHON3) $(srcdir)/doc/make-html '$(srcdir)' html '$(VERSION)'
install-html-local: html-local
	rm -rf '$(DESTDIR)$(htmldir)/html'
	$(MKDIR_P) '$(DESTDIR)$(htmldir)'
	cp -r html '$(DESTDIR)$(htmldir)/html'
clean-local:
	rm -rf html

# Words that src/tests/check-words.sh accepts beside those of the dictionary.
EXTRA_DIST += doc/words.txt

# Plots of the ladder, as `make ladder` writes them.
EXTRA_DIST += \
	doc/performance/ladder-clients.png \
	doc/performance/ladder-clients.svg \
	doc/performance/ladder-cpu.png \
	doc/performance/ladder-cpu.svg \
	doc/performance/ladder-disk-timeline-1.png \
	doc/performance/ladder-disk-timeline-1.svg \
	doc/performance/ladder-disk-timeline-8.png \
	doc/performance/ladder-disk-timeline-8.svg \
	doc/performance/ladder-latency.png \
	doc/performance/ladder-latency.svg \
	doc/performance/ladder-load.png \
	doc/performance/ladder-load.svg \
	doc/performance/ladder-scaling-connections.png \
	doc/performance/ladder-scaling-connections.svg \
	doc/performance/ladder-scaling-listeners.png \
	doc/performance/ladder-scaling-listeners.svg \
	doc/performance/ladder-scaling-windows.png \
	doc/performance/ladder-scaling-windows.svg \
	doc/performance/ladder-switches.png \
	doc/performance/ladder-switches.svg \
	doc/performance/ladder-syscalls.png \
	doc/performance/ladder-syscalls.svg \
	doc/performance/ladder-throughput.png \
	doc/performance/ladder-throughput.svg
