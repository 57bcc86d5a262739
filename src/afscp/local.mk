# SPDX-License-Identifier: BSD-2-Clause
# afscp: files of AFS volumes.

# All of afscp but main(), for its tests as well.
noinst_LTLIBRARIES += src/afscp/libafscp.la
src_afscp_libafscp_la_SOURCES = \
	src/afscp/afsside.c \
	src/afscp/arguments.c src/afscp/arguments.h \
	src/afscp/bench.c \
	src/afscp/cat.c \
	src/afscp/change.c src/afscp/change.h \
	src/afscp/commands.h \
	src/afscp/completion.c src/afscp/completion.h \
	src/afscp/contents.c src/afscp/contents.h \
	src/afscp/copyjobs.c src/afscp/copyjobs.h \
	src/afscp/failure.c src/afscp/failure.h \
	src/afscp/filter.c src/afscp/filter.h \
	src/afscp/find.c \
	src/afscp/folder.h \
	src/afscp/get.c src/afscp/get.h \
	src/afscp/gettree.c \
	src/afscp/list.c \
	src/afscp/load.c src/afscp/load.h \
	src/afscp/local.c src/afscp/local.h \
	src/afscp/localside.c \
	src/afscp/lock.c \
	src/afscp/mix.c src/afscp/mix.h \
	src/afscp/names.c \
	src/afscp/output.c src/afscp/output.h \
	src/afscp/pace.c src/afscp/pace.h \
	src/afscp/pathuse.c src/afscp/pathuse.h \
	src/afscp/place.c src/afscp/place.h \
	src/afscp/put.c src/afscp/put.h \
	src/afscp/putfile.c \
	src/afscp/putgroup.c \
	src/afscp/putlevel.c src/afscp/putlevel.h \
	src/afscp/rights.c \
	src/afscp/run.c src/afscp/run.h \
	src/afscp/scatter.c src/afscp/scatter.h \
	src/afscp/session.c src/afscp/session.h \
	src/afscp/space.c \
	src/afscp/sync.c src/afscp/sync.h \
	src/afscp/synctree.c \
	src/afscp/tasks.c src/afscp/tasks.h \
	src/afscp/together.c \
	src/afscp/tree.c src/afscp/tree.h

bin_PROGRAMS += src/afscp/afscp
src_afscp_afscp_SOURCES = src/afscp/main.c
src_afscp_afscp_LDADD = src/afscp/libafscp.la src/client/librxafs_core.la src/program/libprogram.la src/afs/libafs.la \
	src/rx/librxwire.la $(JANSSON_LIBS) $(PTHREAD_LIBS)
$(src_afscp_libafscp_la_OBJECTS) $(src_afscp_afscp_OBJECTS): $(afs_headers)

dist_man_MANS += doc/man/afscp.1

# Made by "afscp completion"; src/tests/tools/completions.sh compares them.
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = src/afscp/completion/afscp
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = src/afscp/completion/_afscp
fishcompletiondir = $(datadir)/fish/vendor_completions.d
dist_fishcompletion_DATA = src/afscp/completion/afscp.fish
