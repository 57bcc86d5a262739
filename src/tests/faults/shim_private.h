/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the shim share. */
#ifndef TESTS_FAULTS_SHIM_PRIVATE_H
#define TESTS_FAULTS_SHIM_PRIVATE_H

#include "shim.h"

/*
 * Where off_t has 64 bits and a word 32, the C library's headers turn these into functions of other
 * names, and it is those that callers' objects ask for.
 */
#if defined(__GLIBC__) && __WORDSIZE == 32 && defined(_FILE_OFFSET_BITS) && _FILE_OFFSET_BITS == 64
#define SHIM_LARGE_FILES
#define __wrap_open	__wrap_open64
#define __real_open	__real_open64
#define __wrap_openat	__wrap_openat64
#define __real_openat	__real_openat64
#define __wrap___open_2 __wrap___open64_2
#define __wrap___openat_2 __wrap___openat64_2
#define __wrap_fopen	__wrap_fopen64
#define __real_fopen	__real_fopen64
#define __wrap_fstat	__wrap_fstat64
#define __real_fstat	__real_fstat64
#define __wrap_fstatat	__wrap_fstatat64
#define __real_fstatat	__real_fstatat64
#define __wrap_fstatvfs __wrap_fstatvfs64
#define __real_fstatvfs __real_fstatvfs64
#define __wrap_preadv	__wrap_preadv64
#define __real_preadv	__real_preadv64
#define __wrap_preadv2	__wrap_preadv64v2
#define __real_preadv2	__real_preadv64v2
#endif

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
