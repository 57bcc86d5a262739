# SPDX-License-Identifier: BSD-2-Clause
# librxwire-classic: the interface of classic Rx, as OpenAFS's programs use it, on librxwire.

classic_sources =
classic_headers =

include src/classic/base/local.mk
include src/classic/security/local.mk
include src/classic/core/local.mk
include src/classic/xdr/local.mk
include src/classic/watch/local.mk

# The headers have the names of classic Rx, so they lie in a folder of their own.
classicincludedir = $(includedir)/rxwire-classic/rx
classicinclude_HEADERS = $(classic_headers)
pkgconfig_DATA += rxwire-classic.pc

CLASSIC_CPPFLAGS = -DAFS_PTHREAD_ENV -I$(top_srcdir)/src/classic

# Every object without a symbol map, for tests of internals.
noinst_LTLIBRARIES += src/classic/librxwire_classic_core.la
src_classic_librxwire_classic_core_la_SOURCES = src/classic/classic.h $(classic_sources) $(classic_headers)
src_classic_librxwire_classic_core_la_LIBTOOLFLAGS = $(COMPILE_ONCE)
src_classic_librxwire_classic_core_la_CPPFLAGS = $(AM_CPPFLAGS) $(CLASSIC_CPPFLAGS)
src_classic_librxwire_classic_core_la_LIBADD = src/rx/librxwire.la $(CRYPTO_LIBS) $(PTHREAD_LIBS)

lib_LTLIBRARIES += src/classic/librxwire-classic.la
src_classic_librxwire_classic_la_SOURCES =
src_classic_librxwire_classic_la_LIBADD = src/classic/librxwire_classic_core.la src/rx/librxwire.la $(PTHREAD_LIBS)
src_classic_librxwire_classic_la_LDFLAGS = $(AM_LDFLAGS) -no-undefined -version-info 0:0:0
if VERSION_SCRIPT
src_classic_librxwire_classic_la_LDFLAGS += -Wl,--version-script=$(top_srcdir)/src/classic/librxwire-classic.map
src_classic_librxwire_classic_la_DEPENDENCIES = src/classic/librxwire_classic_core.la src/classic/librxwire-classic.map
endif
EXTRA_DIST += src/classic/librxwire-classic.map
