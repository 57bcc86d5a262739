/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers with the names that AFS programs use. With OpenAFS's headers in reach these are theirs,
 * so that both sets of headers can be included; otherwise they are defined here.
 */
#ifndef RXWIRE_CLASSIC_TYPES_H
#define RXWIRE_CLASSIC_TYPES_H

#if !defined(AFS_PTHREAD_ENV)
#	error "librxwire-classic is for programs with POSIX threads: compile with -DAFS_PTHREAD_ENV. LWP is not supported."
#endif

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#if defined(__has_include)
#	if __has_include(<afs/param.h>) && __has_include(<afs/stds.h>)
#		define RXWIRE_CLASSIC_WITH_OPENAFS 1
#	endif
#endif

#ifdef RXWIRE_CLASSIC_WITH_OPENAFS

#	include <afs/param.h>
#	include <afs/stds.h>

#else

typedef int16_t afs_int16;
typedef uint16_t afs_uint16;
typedef int32_t afs_int32;
typedef uint32_t afs_uint32;
typedef long long afs_int64;
typedef unsigned long long afs_uint64;

/* 64 bits as two halves. */
typedef struct afs_hyper_t {
	unsigned int high;
	unsigned int low;
} afs_hyper_t;

typedef struct afsUUID {
	afs_uint32 time_low;
	afs_uint16 time_mid;
	afs_uint16 time_hi_and_version;
	char clock_seq_hi_and_reserved;
	char clock_seq_low;
	char node[6];
} afsUUID;

/* 100 ns since 1970. */
struct afs_time64 {
	afs_int64 ticks;
};

#	define static_inline static inline

#endif

#ifdef __GNUC__
#	define RXWIRE_CLASSIC_FORMAT(format, first) \
		__attribute__((__format__(__printf__, format, first)))
#	define RXWIRE_CLASSIC_NORETURN __attribute__((__noreturn__))
#else
#	define RXWIRE_CLASSIC_FORMAT(format, first)
#	define RXWIRE_CLASSIC_NORETURN
#endif

#endif
