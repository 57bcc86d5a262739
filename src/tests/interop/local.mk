# SPDX-License-Identifier: BSD-2-Clause
# Interoperation with OpenAFS: not part of `make check`, since it wants packages and namespaces.
# `make interop` here, or the last stage of `./quickstart check`; see src/tests/interop/README.md.

EXTRA_DIST += \
	src/tests/interop/README.md \
	src/tests/interop/afsrx.h \
	src/tests/interop/afsrx_client.c \
	src/tests/interop/afsrx_server.c \
	src/tests/interop/afsrx_util.c \
	src/tests/interop/cell.bash \
	src/tests/interop/checks.bash \
	src/tests/interop/groups.bash \
	src/tests/interop/inside \
	src/tests/interop/kernel \
	src/tests/interop/library.bash \
	src/tests/interop/lossy_relay.c \
	src/tests/interop/make_dump.c \
	src/tests/interop/packages.bash \
	src/tests/interop/run \
	src/tests/interop/rxdebug.bash \
	src/tests/interop/rxfsd.bash \
	src/tests/interop/rxperf_client.bash \
	src/tests/interop/rxperf_server.bash

.PHONY: interop
interop: all
	bash $(srcdir)/src/tests/interop/run $(abs_top_builddir)
