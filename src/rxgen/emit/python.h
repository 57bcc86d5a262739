/* SPDX-License-Identifier: BSD-2-Clause */
/* The Python module of an interface. */
#ifndef RXGEN_PYTHON_H
#define RXGEN_PYTHON_H

#include "rxgen/ast.h"

/* The checked tree as a Python module, malloc'ed; NULL if memory is exhausted. */
char *xg_python(const struct xg_file *file, const struct xg_options *options, size_t *length);

/*
 * The name of the module of an interface file, "afs_common" of "some/where/afs-common.xg". `room`
 * is the size of `name`, at least 2; longer names are cut.
 */
void xg_python_module(const char *file, char *name, size_t room);

#endif
