# SPDX-License-Identifier: BSD-2-Clause
# rxfsd. Its code is a convenience library, so that the tests can link it without main.

fileserver_sources = \
	src/fileserver/access.c \
	src/fileserver/callbacks.c src/fileserver/callbacks.h \
	src/fileserver/clients.c src/fileserver/clients.h src/fileserver/clients_private.h \
	src/fileserver/figures.c src/fileserver/figures.h \
	src/fileserver/fs_fetch.c src/fileserver/fs_private.h \
	src/fileserver/fs_refuse.c \
	src/fileserver/fs_service.c src/fileserver/service.h \
	src/fileserver/fs_stats.c \
	src/fileserver/fs_status.c \
	src/fileserver/guard.c src/fileserver/guard.h \
	src/fileserver/image.c \
	src/fileserver/journal.c \
	src/fileserver/layer.h src/fileserver/layer_posix.c \
	src/fileserver/log.c src/fileserver/log.h \
	src/fileserver/promises.c \
	src/fileserver/readers.c src/fileserver/readers.h \
	src/fileserver/reload.c src/fileserver/reload.h \
	src/fileserver/server.c src/fileserver/server.h \
	src/fileserver/state.c src/fileserver/state.h \
	src/fileserver/store.c src/fileserver/store.h src/fileserver/store_private.h \
	src/fileserver/stream.c src/fileserver/stream.h \
	src/fileserver/table.c src/fileserver/table.h \
	src/fileserver/timeline.c src/fileserver/timeline.h \
	src/fileserver/vl_service.c \
	src/fileserver/remember.c src/fileserver/remember.h \
	src/fileserver/rootafs.c src/fileserver/rootafs.h \
	src/fileserver/usage.c src/fileserver/usage.h \
	src/fileserver/vol_service.c src/fileserver/vol_service.h \
	src/fileserver/volume.c src/fileserver/volume.h src/fileserver/volume_private.h \
	src/fileserver/watch.c src/fileserver/watch.h \
	src/fileserver/xstats.c src/fileserver/xstats.h

noinst_LTLIBRARIES += src/fileserver/libfileserver.la
src_fileserver_libfileserver_la_SOURCES = $(fileserver_sources)
src_fileserver_libfileserver_la_LIBADD = src/tools/libtools.la src/afs/librxafs.la \
	src/rx/librxwire.la $(PTHREAD_LIBS)

# A target that is made by its name alone does not wait for BUILT_SOURCES.
$(src_fileserver_libfileserver_la_OBJECTS): $(afs_headers)

sbin_PROGRAMS += src/fileserver/rxfsd
src_fileserver_rxfsd_SOURCES = src/fileserver/main.c
src_fileserver_rxfsd_LDADD = src/fileserver/libfileserver.la src/tools/libtools.la \
	src/afs/librxafs.la src/rx/librxwire.la $(PTHREAD_LIBS)

dist_man_MANS += doc/man/rxfsd.8

# What systemd needs, with the directories of this installation; installed if configure was told where
# units go. A configuration file that is there already stays as it is.
system_files = src/fileserver/system/rxfsd.service src/fileserver/system/rxfsd.conf \
	src/fileserver/system/sysusers.conf src/fileserver/system/tmpfiles.conf
EXTRA_DIST += $(system_files:=.in)
CLEANFILES += $(system_files)
$(system_files): Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(SED) -e 's|[@]sbindir[@]|$(sbindir)|g' -e 's|[@]sysconfdir[@]|$(sysconfdir)|g' \
		$(srcdir)/$@.in >$@.tmp && mv $@.tmp $@
src/fileserver/system/rxfsd.service: $(srcdir)/src/fileserver/system/rxfsd.service.in
src/fileserver/system/rxfsd.conf: $(srcdir)/src/fileserver/system/rxfsd.conf.in
src/fileserver/system/sysusers.conf: $(srcdir)/src/fileserver/system/sysusers.conf.in
src/fileserver/system/tmpfiles.conf: $(srcdir)/src/fileserver/system/tmpfiles.conf.in
if SYSTEMD_UNIT
systemdsystemunit_DATA = src/fileserver/system/rxfsd.service
system_destinations = '$(DESTDIR)$(prefix)/lib/sysusers.d' '$(DESTDIR)$(prefix)/lib/tmpfiles.d' \
	'$(DESTDIR)$(sysconfdir)/rxwire'
install-data-local: $(system_files)
	$(MKDIR_P) $(system_destinations)
	$(INSTALL_DATA) src/fileserver/system/sysusers.conf '$(DESTDIR)$(prefix)/lib/sysusers.d/rxfsd.conf'
	$(INSTALL_DATA) src/fileserver/system/tmpfiles.conf '$(DESTDIR)$(prefix)/lib/tmpfiles.d/rxfsd.conf'
	test -e '$(DESTDIR)$(sysconfdir)/rxwire/rxfsd.conf' || \
		$(INSTALL_DATA) src/fileserver/system/rxfsd.conf '$(DESTDIR)$(sysconfdir)/rxwire/rxfsd.conf'
uninstall-local:
	rm -f '$(DESTDIR)$(prefix)/lib/sysusers.d/rxfsd.conf' '$(DESTDIR)$(prefix)/lib/tmpfiles.d/rxfsd.conf'
endif
