# SPDX-License-Identifier: BSD-2-Clause
# Interoperation with OpenAFS: no part of `make check`; `./quickstart check` calls the program run.

EXTRA_DIST += \
	src/tests/interop/afsrx.h \
	src/tests/interop/afsrx_client.c \
	src/tests/interop/afsrx_server.c \
	src/tests/interop/afsrx_util.c \
	src/tests/interop/cell.bash \
	src/tests/interop/checks.bash \
	src/tests/interop/groups.bash \
	src/tests/interop/inside \
	src/tests/interop/library.bash \
	src/tests/interop/make_dump.c \
	src/tests/interop/packages.bash \
	src/tests/interop/run \
	src/tests/interop/rxdebug.bash \
	src/tests/interop/rxfsd.bash \
	src/tests/interop/rxperf_client.bash \
	src/tests/interop/rxperf_server.bash
