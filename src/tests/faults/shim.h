/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the library and the system: counts what it asks for, refuses what it is told to. */
#ifndef TESTS_FAULTS_SHIM_H
#define TESTS_FAULTS_SHIM_H

#include <stdbool.h>
#include <stdint.h>

/* What can fail. Each occurrence of a kind has a number, from 1 on, since the plan was made. */
enum shim_kind {
	SHIM_MEMORY, /* malloc, calloc, realloc, reallocarray, aligned_alloc, posix_memalign, strdup, ... */
	SHIM_THREAD, /* pthread_create */
	SHIM_SOCKET, /* socket */
	SHIM_BIND,
	SHIM_NAME,   /* getsockname */
	SHIM_SET,    /* setsockopt */
	SHIM_GET,    /* getsockopt */
	SHIM_EVENT,  /* eventfd */
	SHIM_RANDOM, /* getrandom */
	SHIM_SEND,   /* sendmsg, sendmmsg */
	SHIM_RECV,   /* recvmsg, recvmmsg */
	SHIM_POLL,   /* poll, ppoll */
	SHIM_READ,
	SHIM_WRITE,
	SHIM_CLOCK,  /* clock_gettime(CLOCK_MONOTONIC): does not fail, but jumps */
	SHIM_DATE,   /* clock_gettime(CLOCK_REALTIME), time: the same */
	SHIM_OPEN,   /* open, openat, openat2, fopen, fdopendir, opendir, pipe2, mkdir, rename */
	SHIM_STAT,   /* fstat, fstatat, fstatvfs, readlinkat */
	SHIM_FILE,   /* pread, preadv, preadv2, fsync */
	SHIM_NOTIFY, /* inotify_init1, inotify_add_watch */
	SHIM_KINDS
};
const char *shim_name(enum shim_kind kind);

/* Which occurrences of one kind fail, and how. */
struct shim_plan {
	enum shim_kind kind;
	uint64_t at;    /* the first that fails; 0 = none */
	uint64_t many;  /* how many in a row do, UINT64_MAX = all from then on; ... */
	uint64_t lasts; /* ... but no longer than so many ns after the first; 0 = without end */
	int error;      /* errno; memory and threads have their own */
	int64_t jump;   /* SHIM_CLOCK, SHIM_DATE: ns by which it is ahead, or behind, from `at` on */
};

/* Follow this plan from now on, and count anew. Before any thread of the library runs. */
void shim_arm(const struct shim_plan *plan);
/* Nothing fails any more; clocks stay where they are. Any thread. */
void shim_disarm(void);
/* Where no thread of the library runs: the clocks are the system's again. */
void shim_set_clock_back(void);
/* Since shim_arm(): occurrences, and how many of them were refused. */
uint64_t shim_seen(enum shim_kind kind);
uint64_t shim_refused(void);

/* What the library holds now. Threads count until their function has returned. */
struct shim_held {
	long memory, descriptors, threads;
};
struct shim_held shim_held(void);

#endif
