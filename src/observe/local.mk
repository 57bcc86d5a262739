# SPDX-License-Identifier: BSD-2-Clause
# librxwire-observe: traces as pcapng files, statistics as text, by means of the public functions of librxwire.
# Its header is src/rx/include/rxwire/observe.h.

observe_sources = \
	src/observe/files.c \
	src/observe/metrics.c \
	src/observe/observe.h \
	src/observe/pcapng.c

# A static library only: applications and their libraries may contain it.
lib_LIBRARIES += src/observe/librxwire-observe.a
src_observe_librxwire_observe_a_SOURCES = $(observe_sources)
src_observe_librxwire_observe_a_CFLAGS = $(AM_CFLAGS) -fPIC
