# SPDX-License-Identifier: BSD-2-Clause
# The examples are not part of the build: they are installed as text, and `make installcheck` builds
# them against the installed copy.

nobase_dist_doc_DATA = \
	examples/Makefile \
	examples/README.md \
	examples/file-client.c \
	examples/file-server.c \
	examples/ported.c \
	examples/shout-client.c \
	examples/shout-server.c \
	examples/afs/CMakeLists.txt \
	examples/afs/Makefile \
	examples/afs/afs-list.c \
	examples/afs/afs-watch.c \
	examples/afs/meson.build \
	examples/bindings/shout.cc \
	examples/bindings/shout.py \
	examples/kv/Makefile.am \
	examples/kv/README.md \
	examples/kv/bootstrap \
	examples/kv/configure.ac \
	examples/kv/kv-client.c \
	examples/kv/kv-many.c \
	examples/kv/kv-server.c \
	examples/kv/kv.xg \
	examples/kv/servers.c \
	examples/kv/servers.h \
	examples/kv/store.c \
	examples/kv/store.h \
	examples/kv/test-kv.sh \
	examples/loops/Makefile \
	examples/loops/echo.c \
	examples/loops/event.c \
	examples/loops/longpoll.c \
	examples/loops/loop.h \
	examples/loops/uv.c \
	examples/notes/CMakeLists.txt \
	examples/notes/Makefile.am \
	examples/notes/configure.ac \
	examples/notes/meson.build \
	examples/notes/notes-client.c \
	examples/notes/notes-key.c \
	examples/notes/notes-server.c \
	examples/notes/notes.xg \
	examples/python/afs-files.py \
	examples/python/afs-watch.py \
	examples/python/echo-load.py \
	examples/python/echo-server.py \
	examples/python/echo.xg \
	examples/python/phones-async.py \
	examples/python/phones-client.py \
	examples/python/phones-server.py \
	examples/python/phones.xg \
	examples/psk/Makefile \
	examples/psk/README.md \
	examples/psk/hello.c \
	examples/psk/psk.c \
	examples/psk/psk.h

EXTRA_DIST += src/tests/check-examples.sh src/tests/check-tutorial.sh

installcheck-local:
	@top_srcdir='$(abs_top_srcdir)' CC='$(CC)' SANITIZERS='$(enable_sanitizers)' DESTDIR='$(DESTDIR)' \
		$(SHELL) $(srcdir)/src/tests/check-examples.sh '$(prefix)' || test $$? -eq 77
