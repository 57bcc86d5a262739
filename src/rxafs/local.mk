# SPDX-License-Identifier: BSD-2-Clause
# rxafs: the mount daemon, and rxafsctl, which administers it.

if HAVE_FUSE
bin_PROGRAMS += src/rxafs/rxafs
src_rxafs_rxafs_SOURCES = \
	src/rxafs/answer.h src/rxafs/attribute_ops.c src/rxafs/users/caller.c \
	src/rxafs/users/cell_token.c src/rxafs/users/cell_token.h src/rxafs/users/members.h src/rxafs/control.c src/rxafs/control.h \
	src/rxafs/directory_ops.c src/rxafs/dying.c src/rxafs/figures.c src/rxafs/figures.h src/rxafs/file_ops.c src/rxafs/flusher.c src/rxafs/kernel.c src/rxafs/kernel.h src/rxafs/known.c src/rxafs/known.h \
	src/rxafs/lanes.c src/rxafs/lanes.h src/rxafs/log.c src/rxafs/login.c \
	src/rxafs/users/logins.c src/rxafs/users/logins.h \
	src/rxafs/main.c src/rxafs/mount.h src/rxafs/mount_options.c src/rxafs/mount_options.h \
	src/rxafs/name_ops.c src/rxafs/pages.c src/rxafs/readers.c src/rxafs/readers.h src/rxafs/session.c src/rxafs/users/sessions.c src/rxafs/users/sessions.h \
	src/rxafs/task.c src/rxafs/task.h src/rxafs/through.c src/rxafs/through.h src/rxafs/users/tickets.c src/rxafs/users/tickets.h \
	src/rxafs/users/tokens.c src/rxafs/users/tokens.h \
	src/rxafs/watchdog.c src/rxafs/watchdog.h
src_rxafs_rxafs_CFLAGS = $(AM_CFLAGS) $(FUSE_CFLAGS)
src_rxafs_rxafs_LDADD = src/client/librxafs_core.la src/program/libprogram.la src/afs/libafs.la \
	src/rx/librxwire.la $(FUSE_LIBS) $(KRB5_LIBS) $(JANSSON_LIBS) $(PTHREAD_LIBS)

dist_man_MANS += doc/man/rxafs.1 doc/man/rxafsctl.1
bin_PROGRAMS += src/rxafs/rxafsctl
src_rxafs_rxafsctl_SOURCES = src/rxafs/control.h src/rxafs/ctl/ctl.c src/rxafs/ctl/ctl.h \
	src/rxafs/ctl/ctl_login.c src/rxafs/users/tickets.c src/rxafs/users/tickets.h
src_rxafs_rxafsctl_LDADD = src/program/libprogram.la src/afs/libafs.la src/rx/librxwire.la \
	$(KRB5_LIBS) $(JANSSON_LIBS) $(PTHREAD_LIBS)
$(src_rxafs_rxafs_OBJECTS) $(src_rxafs_rxafsctl_OBJECTS): $(afs_headers)
else
EXTRA_DIST += doc/man/rxafs.1 doc/man/rxafsctl.1
endif

# What systemd needs; see the file server's.
rxafs_system_files = src/rxafs/system/rxafs.service src/rxafs/system/rxafs.conf src/rxafs/system/user/rxafs.service \
	src/rxafs/system/user/rxafs-login.service
EXTRA_DIST += $(rxafs_system_files:=.in)
CLEANFILES += $(rxafs_system_files)
$(rxafs_system_files): Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(SED) -e 's|[@]bindir[@]|$(bindir)|g' -e 's|[@]sysconfdir[@]|$(sysconfdir)|g' $(srcdir)/$@.in >$@.tmp && mv $@.tmp $@
src/rxafs/system/rxafs.service: $(srcdir)/src/rxafs/system/rxafs.service.in
src/rxafs/system/rxafs.conf: $(srcdir)/src/rxafs/system/rxafs.conf.in
src/rxafs/system/user/rxafs.service: $(srcdir)/src/rxafs/system/user/rxafs.service.in
src/rxafs/system/user/rxafs-login.service: $(srcdir)/src/rxafs/system/user/rxafs-login.service.in
if SYSTEMD_UNIT
if HAVE_FUSE
rxafsunitdir = $(systemdsystemunitdir)
rxafsunit_DATA = src/rxafs/system/rxafs.service
rxafsuserunitdir = $(prefix)/lib/systemd/user
rxafsuserunit_DATA = src/rxafs/system/user/rxafs.service src/rxafs/system/user/rxafs-login.service
# A configuration file that is there already stays as it is.
install-rxafs-configuration: src/rxafs/system/rxafs.conf
	$(MKDIR_P) '$(DESTDIR)$(sysconfdir)/rxwire'
	test -e '$(DESTDIR)$(sysconfdir)/rxwire/rxafs.conf' || \
		$(INSTALL_DATA) src/rxafs/system/rxafs.conf '$(DESTDIR)$(sysconfdir)/rxwire/rxafs.conf'
system_installations = install-rxafs-configuration
endif
endif
