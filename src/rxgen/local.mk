# SPDX-License-Identifier: BSD-2-Clause
# rxwgen, the interface compiler. librxgen.la is everything except the command line.

rxgen_sources = \
	src/rxgen/ast.h \
	src/rxgen/read.c

# Basics: memory, files, messages, names, tokens.
rxgen_sources += \
	src/rxgen/text/arena.c src/rxgen/text/arena.h \
	src/rxgen/text/diag.c src/rxgen/text/diag.h \
	src/rxgen/text/expression.c src/rxgen/text/expression.h \
	src/rxgen/text/macro.h \
	src/rxgen/text/name.c src/rxgen/text/name.h \
	src/rxgen/text/reserved.c \
	src/rxgen/text/source.c src/rxgen/text/source.h \
	src/rxgen/text/token.c src/rxgen/text/token.h

# Preprocessor: from files to tokens.
rxgen_sources += \
	src/rxgen/pp/argument.c \
	src/rxgen/pp/condition.c \
	src/rxgen/pp/directive.c \
	src/rxgen/pp/lex.c \
	src/rxgen/pp/macro.c \
	src/rxgen/pp/pp.c src/rxgen/pp/pp.h src/rxgen/pp/pp_internal.h

# Parser: from tokens to the tree of ast.h.
rxgen_sources += \
	src/rxgen/parse/graph.c \
	src/rxgen/parse/measure.c \
	src/rxgen/parse/parse.c src/rxgen/parse/parse.h \
	src/rxgen/parse/parse_decl.c \
	src/rxgen/parse/parse_proc.c \
	src/rxgen/parse/parse_type.c \
	src/rxgen/parse/symbol.c

# Generators: from the tree to C and Python.
rxgen_sources += \
	src/rxgen/emit/align.c \
	src/rxgen/emit/client.c \
	src/rxgen/emit/codes.c \
	src/rxgen/emit/emit.c \
	src/rxgen/emit/emit.h \
	src/rxgen/emit/header.c \
	src/rxgen/emit/multi.c \
	src/rxgen/emit/names.c \
	src/rxgen/emit/params.c \
	src/rxgen/emit/python.c \
	src/rxgen/emit/server.c \
	src/rxgen/emit/type.c \
	src/rxgen/emit/view.c \
	src/rxgen/emit/xdr.c \
	src/rxgen/emit/xdr_copy.c \
	src/rxgen/emit/xdr_free.c \
	src/rxgen/emit/xdr_get.c \
	src/rxgen/emit/xdr_put.c

noinst_LTLIBRARIES += src/rxgen/librxgen.la
src_rxgen_librxgen_la_SOURCES = $(rxgen_sources)

bin_PROGRAMS += src/rxgen/rxwgen
src_rxgen_rxwgen_SOURCES = \
	src/rxgen/command.h \
	src/rxgen/depfile.c \
	src/rxgen/emit/json.c \
	src/rxgen/main.c \
	src/rxgen/options.c \
	src/rxgen/output.c
src_rxgen_rxwgen_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_rxgen_rxwgen_LDADD = src/rxgen/librxgen.la $(JANSSON_LIBS)

# Build rules for .xg files of other projects: doc/tutorial.md, examples/kv.

rxwgenamdir = $(datadir)/rxwire
dist_rxwgenam_DATA = src/rxgen/automake/rxwgen.am

rxwgenm4dir = $(datadir)/aclocal
dist_rxwgenm4_DATA = src/rxgen/automake/rxwgen.m4

dist_man_MANS += doc/man/rxwgen.1
