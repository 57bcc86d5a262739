/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the shim share. */
#ifndef TESTS_FAULTS_SHIM_PRIVATE_H
#define TESTS_FAULTS_SHIM_PRIVATE_H

#include "shim.h"

/* Defines the function that the linker's --wrap calls, and declares the one that it stands for. */
#define WRAP(type, name, ...)             \
	type __real_##name(__VA_ARGS__);  \
	type __wrap_##name(__VA_ARGS__);  \
	type __wrap_##name(__VA_ARGS__)

/* One more of its kind: is it to fail? */
bool shim_fails(enum shim_kind kind);
/* The same for a system call: errno is set. */
bool shim_refuses(enum shim_kind kind);
/* A descriptor was opened, if fd is one: it is counted. Returns fd. */
int shim_opened(int fd);
/* A descriptor is closed, if r is 0. Returns r. */
int shim_closed(int r);
/* Memory was given, or is taken back: it is counted. Either may be NULL. */
void *shim_remember(void *p);
void shim_forget(void *p);

#endif
