# SPDX-License-Identifier: BSD-2-Clause
# Documents and man pages: dist_doc_DATA += doc/NAME.md, dist_man_MANS += doc/man/NAME.SECTION.

dist_doc_DATA += \
	doc/admin.md \
	doc/architecture.md \
	doc/architecture-client.md \
	doc/architecture-objects.md \
	doc/architecture-server.md \
	doc/architecture-transport.md \
	doc/attacks.md \
	doc/backup.md \
	doc/cell.md \
	doc/choosing.md \
	doc/classic.md \
	doc/client.md \
	doc/conformance.md \
	doc/cookbook.md \
	doc/developer.md \
	doc/embedding.md \
	doc/glossary.md \
	doc/introduction.md \
	doc/moving.md \
	doc/networks.md \
	doc/overload.md \
	doc/paths.md \
	doc/performance.md \
	doc/porting.md \
	doc/ports.md \
	doc/python.md \
	doc/releases.md \
	doc/scaling.md \
	doc/soname.md \
	doc/threads.md \
	doc/tutorial.md

# History, and the measurements behind the pages of results.
notesdir = $(docdir)/notes
dist_notes_DATA = \
	doc/notes/attacks.md \
	doc/notes/classic.md \
	doc/notes/client-cache.md \
	doc/notes/crowd.md \
	doc/notes/decisions.md \
	doc/notes/io-uring.md \
	doc/notes/long-paths.md \
	doc/notes/mechanisms.md \
	doc/notes/mount-tests.md \
	doc/notes/mount.md \
	doc/notes/networks.md \
	doc/notes/overload.md \
	doc/notes/paths.md \
	doc/notes/performance.md \
	doc/notes/ports.md \
	doc/notes/scaling.md \
	doc/notes/server.md \
	doc/notes/store-database.md \
	doc/notes/store-performance.md \
	doc/notes/store.md \
	doc/notes/transport.md \
	doc/notes/workers.md \
	doc/notes/xfstests.md \
	doc/notes/zero-copy.md

# Specifications of the protocols, which comments and documents cite by section.
specdir = $(docdir)/spec
dist_spec_DATA = \
	doc/spec/README.md \
	doc/spec/afs-fileserver.md \
	doc/spec/afs-location.md \
	doc/spec/rx-protocol.md \
	doc/spec/rx-wide-windows.md \
	doc/spec/rxgen.md

dist_man_MANS += \
	doc/man/rxw_call_begin.3 \
	doc/man/rxw_call_defer.3 \
	doc/man/rxw_call_set_callback.3 \
	doc/man/rxw_config_init.3 \
	doc/man/rxw_connection_create.3 \
	doc/man/rxw_connpool.3 \
	doc/man/rxw_endpoint_create.3 \
	doc/man/rxw_engine_create.3 \
	doc/man/rxw_file_send.3 \
	doc/man/rxw_keys.3 \
	doc/man/librxafs.3 \
	doc/man/rxw_queue.3 \
	doc/man/rxw_rpc.3 \
	doc/man/rxw_rpcstats.3 \
	doc/man/rxw_rxgk.3 \
	doc/man/rxw_rxkad.3 \
	doc/man/rxw_security.3 \
	doc/man/rxw_service_add.3 \
	doc/man/rxw_stats.3 \
	doc/man/rxw_strerror.3 \
	doc/man/rxw_token.3 \
	doc/man/rxw_xdr.3 \
	doc/man/rxwire.3 \
	doc/man/rxwire.7
# With --disable-probes there is nothing that it describes.
if PROBES
dist_man_MANS += doc/man/rxwire-probes.7
else
EXTRA_DIST += doc/man/rxwire-probes.7
endif

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

# Data and plots of the pages of results. `make charts` draws the plots, and writes the tables of the pages.
performancedir = $(docdir)/performance
dist_performance_DATA = \
	doc/performance/attacks.csv \
	doc/performance/attacks.svg \
	doc/performance/clients.csv \
	doc/performance/clients.svg \
	doc/performance/crowd.csv \
	doc/performance/crowd.svg \
	doc/performance/networks.csv \
	doc/performance/networks.svg \
	doc/performance/overload.csv \
	doc/performance/overload.svg \
	doc/performance/scaling.csv \
	doc/performance/scaling.svg \
	doc/performance/small-calls.csv \
	doc/performance/small-calls.svg \
	doc/performance/throughput.csv \
	doc/performance/throughput.svg

.PHONY: charts
charts:
	$(PYTHON3) -B $(srcdir)/src/bench/charts $(srcdir)

# Words that src/tests/check-words.sh accepts beside those of the dictionary.
EXTRA_DIST += doc/words.txt

# Plots of the notebook, as `make ladder` writes them.
EXTRA_DIST += \
	doc/notes/performance/ladder-clients.svg \
	doc/notes/performance/ladder-cpu.svg \
	doc/notes/performance/ladder-disk-timeline-1.svg \
	doc/notes/performance/ladder-disk-timeline-8.svg \
	doc/notes/performance/ladder-latency.svg \
	doc/notes/performance/ladder-load.svg \
	doc/notes/performance/ladder-scaling-connections.svg \
	doc/notes/performance/ladder-scaling-listeners.svg \
	doc/notes/performance/ladder-scaling-windows.svg \
	doc/notes/performance/ladder-switches.svg \
	doc/notes/performance/ladder-syscalls.svg \
	doc/notes/performance/ladder-throughput.svg
