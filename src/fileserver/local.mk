# SPDX-License-Identifier: BSD-2-Clause
# rxfsd. Its code is a convenience library, so that the tests can link it without main.

# Modules, the lowest first: each may call those before it.
fileserver_sources =
fileserver_sources += \
	src/fileserver/base/base.h src/fileserver/base/process.c src/fileserver/base/share.c \
	src/fileserver/base/volcounts.c
fileserver_sources += \
	src/fileserver/guard/acl.c src/fileserver/guard/guard.c src/fileserver/guard/guard.h \
	src/fileserver/guard/people.c src/fileserver/guard/people.h
fileserver_sources += \
	src/fileserver/member/answers.c src/fileserver/member/databases.c \
	src/fileserver/member/folder.c src/fileserver/member/member.c src/fileserver/member/member.h \
	src/fileserver/member/membership.h src/fileserver/member/questions.c \
	src/fileserver/member/ownids.c src/fileserver/member/registration.c
fileserver_sources += \
	src/fileserver/callbacks/breaks.c \
	src/fileserver/callbacks/callbacks.c \
	src/fileserver/callbacks/callbacks.h \
	src/fileserver/callbacks/clients.c \
	src/fileserver/callbacks/clients.h \
	src/fileserver/callbacks/ledger.c \
	src/fileserver/callbacks/memory.h \
	src/fileserver/callbacks/promises.c \
	src/fileserver/callbacks/remember.c \
	src/fileserver/callbacks/tables.h
fileserver_sources += \
	src/fileserver/audit/audit.c src/fileserver/audit/audit.h src/fileserver/audit/call.c
fileserver_sources += \
	src/fileserver/io/chunk.h src/fileserver/io/fairrate.c src/fileserver/io/fairrate.h src/fileserver/io/flow.c \
	src/fileserver/io/io.h src/fileserver/io/readers.c src/fileserver/io/saturation.c src/fileserver/io/saturation.h \
	src/fileserver/io/stream.c \
	src/fileserver/io/task.c src/fileserver/io/timeline.c
fileserver_sources += \
	src/fileserver/cell/cell.h src/fileserver/cell/copies.c src/fileserver/cell/locations.c src/fileserver/cell/private.h src/fileserver/cell/relocate.c \
	src/fileserver/cell/rootafs.c \
	src/fileserver/cell/transactions.c src/fileserver/cell/transfer.c \
	src/fileserver/cell/volumes.h
fileserver_sources += \
	src/fileserver/bos/bos.h src/fileserver/bos/bos_service.c
fileserver_sources += \
	src/fileserver/pt/calls.h src/fileserver/pt/pt.h src/fileserver/pt/pt_change.c src/fileserver/pt/pt_service.c
fileserver_sources += \
	src/fileserver/service/fs.h \
	src/fileserver/service/fs_acl.c \
	src/fileserver/service/fs_call.c \
	src/fileserver/service/fs_caller.c \
	src/fileserver/service/fs_change.c \
	src/fileserver/service/fs_fetch.c \
	src/fileserver/service/fs_handlers.h \
	src/fileserver/service/fs_later.c \
	src/fileserver/service/fs_locks.c src/fileserver/service/locks.c \
	src/fileserver/service/fs_session.c src/fileserver/service/sessions.c \
	src/fileserver/service/sessions.h \
	src/fileserver/service/fs_service.c \
	src/fileserver/service/fs_stats.c \
	src/fileserver/service/fs_status.c \
	src/fileserver/service/fs_store.c \
	src/fileserver/service/locks.h \
	src/fileserver/service/metrics.c \
	src/fileserver/service/places.c \
	src/fileserver/service/places.h \
	src/fileserver/service/service.c \
	src/fileserver/service/service.h \
	src/fileserver/service/services.h \
	src/fileserver/service/vol.h \
	src/fileserver/service/vol_list.c \
	src/fileserver/service/vol_service.c
fileserver_sources += \
	src/fileserver/location/entries.h src/fileserver/location/location.h src/fileserver/location/vl_change.c \
	src/fileserver/location/vl_entries.c src/fileserver/location/vl_list.c src/fileserver/location/vl_service.c
fileserver_sources += \
	src/fileserver/figures.c src/fileserver/reload.c src/fileserver/sandbox.c \
	src/fileserver/holders.c src/fileserver/network.c src/fileserver/parts.h src/fileserver/report.c \
	src/fileserver/settings.c src/fileserver/volumes.c src/fileserver/server.c src/fileserver/server.h \
	src/fileserver/state.c src/fileserver/storage.c src/fileserver/storage.h

# The control socket is the only part that needs jansson.
noinst_LTLIBRARIES += src/fileserver/libcontrol.la
src_fileserver_libcontrol_la_SOURCES = \
	src/fileserver/control/control.c src/fileserver/control/control.h

noinst_LTLIBRARIES += src/fileserver/libfileserver.la
src_fileserver_libfileserver_la_SOURCES = $(fileserver_sources)
src_fileserver_libfileserver_la_LIBADD = src/fileserver/libcontrol.la src/admin/libadmin.la \
	src/program/libprogram.la src/client/libcells.la src/afs/libafs.la \
	src/protection/libprotection.la src/volume/libvolume.la src/rx/librxwire.la $(PTHREAD_LIBS)

# A target that is made by its name alone does not wait for BUILT_SOURCES.
$(src_fileserver_libfileserver_la_OBJECTS): $(afs_headers)

sbin_PROGRAMS += src/fileserver/rxfsd
src_fileserver_rxfsd_SOURCES = src/fileserver/main.c
src_fileserver_rxfsd_LDADD = src/fileserver/libfileserver.la src/program/libprogram.la \
	src/afs/libafs.la src/rx/librxwire.la $(PTHREAD_LIBS)

dist_man_MANS += doc/man/rxfsd.8

# What systemd needs, with the directories of this installation; installed if configure was told where
# units go. A configuration file that is there already stays as it is.
system_files = src/fileserver/system/rxfsd.service src/fileserver/system/rxfsd.conf \
	src/fileserver/system/sysusers.conf src/fileserver/system/tmpfiles.conf src/fileserver/system/logrotate.conf
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
src/fileserver/system/logrotate.conf: $(srcdir)/src/fileserver/system/logrotate.conf.in
if SYSTEMD_UNIT
systemdsystemunit_DATA = src/fileserver/system/rxfsd.service
system_destinations = '$(DESTDIR)$(prefix)/lib/sysusers.d' '$(DESTDIR)$(prefix)/lib/tmpfiles.d' \
	'$(DESTDIR)$(sysconfdir)/rxwire' '$(DESTDIR)$(sysconfdir)/logrotate.d'
install-data-local: $(system_files) $(system_installations)
	$(MKDIR_P) $(system_destinations)
	$(INSTALL_DATA) src/fileserver/system/sysusers.conf '$(DESTDIR)$(prefix)/lib/sysusers.d/rxfsd.conf'
	$(INSTALL_DATA) src/fileserver/system/tmpfiles.conf '$(DESTDIR)$(prefix)/lib/tmpfiles.d/rxfsd.conf'
	test -e '$(DESTDIR)$(sysconfdir)/logrotate.d/rxfsd' || \
		$(INSTALL_DATA) src/fileserver/system/logrotate.conf '$(DESTDIR)$(sysconfdir)/logrotate.d/rxfsd'
	test -e '$(DESTDIR)$(sysconfdir)/rxwire/rxfsd.conf' || \
		$(INSTALL_DATA) src/fileserver/system/rxfsd.conf '$(DESTDIR)$(sysconfdir)/rxwire/rxfsd.conf'
uninstall-local:
	rm -f '$(DESTDIR)$(prefix)/lib/sysusers.d/rxfsd.conf' '$(DESTDIR)$(prefix)/lib/tmpfiles.d/rxfsd.conf'
endif
