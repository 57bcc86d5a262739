# SPDX-License-Identifier: BSD-2-Clause
# Tests of the Python package and of rxwgen --python. Each script is skipped where python3 cannot load the library.

check_scripts += \
	src/tests/python/abi.sh \
	src/tests/python/calls.sh \
	src/tests/python/examples.sh \
	src/tests/python/names.sh \
	src/tests/python/programs.sh \
	src/tests/python/rxafs.sh \
	src/tests/python/rxafs_login.sh \
	src/tests/python/types.sh \
	src/tests/python/typing.sh
EXTRA_DIST += \
	src/tests/python/abi.py \
	src/tests/python/calls.py \
	src/tests/python/lib.sh \
	src/tests/python/many.py \
	src/tests/python/many.sh \
	src/tests/python/names.py \
	src/tests/python/renamed.xg \
	src/tests/python/programs.py \
	src/tests/python/rxafs_check.py \
	src/tests/python/coders.py \
	src/tests/python/typing_check.py

check_PROGRAMS += src/tests/python/peer
src_tests_python_peer_SOURCES = src/tests/python/peer.c
src_tests_python_peer_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_builddir)/src/tests/xg
src_tests_python_peer_LDADD = src/tests/xg/libshort.a src/afs/libafs.la src/rx/librxwire.la $(PTHREAD_LIBS)
$(src_tests_python_peer_OBJECTS): src/tests/xg/types.h $(xg_short)
