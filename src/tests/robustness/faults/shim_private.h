/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations shared by the files of the shim. */
#ifndef TESTS_FAULTS_SHIM_PRIVATE_H
#define TESTS_FAULTS_SHIM_PRIVATE_H

#include "shim.h"

/*
 * Where off_t has 64 bits and a word 32, the C library's headers map these to functions of other
 * names, which the objects of callers refer to.
 */
#if defined(__GLIBC__) && __WORDSIZE == 32 && defined(_FILE_OFFSET_BITS) && _FILE_OFFSET_BITS == 64
#define SHIM_LARGE_FILES
#define __wrap_open	__wrap_open64
#define __real_open	__real_open64
#define __wrap_openat	__wrap_openat64
#define __real_openat	__real_openat64
#define __wrap___open_2 __wrap___open64_2
#define __wrap___openat_2 __wrap___openat64_2
#define __wrap_fcntl	__wrap_fcntl64
#define __real_fcntl	__real_fcntl64
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

/* Defines the function that the linker's --wrap calls, and declares the original one. */
#define WRAP(type, name, ...)             \
	type __real_##name(__VA_ARGS__);  \
	type __wrap_##name(__VA_ARGS__);  \
	type __wrap_##name(__VA_ARGS__)

/* Counts one more of its kind; true if it must fail. */
bool shim_fails(enum shim_kind kind);
/* The same for a system call; sets errno. */
bool shim_refuses(enum shim_kind kind);
/* Counts an opened descriptor, if fd is one. Returns fd. */
int shim_opened(int fd);
/* Counts a closed descriptor, if r is 0. Returns r. */
int shim_closed(int r);
/* Records memory that was allocated or freed. Either may be NULL. */
void *shim_remember(void *p);
void shim_forget(void *p);

#endif
