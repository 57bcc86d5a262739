/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A layer between the library and the system that counts requests and fails those that a plan
 * names.
 */
#ifndef TESTS_FAULTS_SHIM_H
#define TESTS_FAULTS_SHIM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Kinds of requests that can fail. The occurrences of each are numbered from 1 since the plan was
 * set.
 */
enum shim_kind {
	SHIM_MEMORY,      /* malloc and the other functions that allocate */
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
	/* open, openat, openat2, fopen, fdopendir, opendir, pipe2, mkdir, rename, F_DUPFD */
	SHIM_OPEN,
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
	uint64_t many;  /* how many in sequence; UINT64_MAX = all from then on; ... */
	uint64_t lasts; /* ... but at most this many ns after the first; 0 = without end */
	int error;      /* errno; memory and threads have fixed ones */
	/* SHIM_CLOCK, SHIM_DATE: ns by which it is ahead (or behind) from `at` on */
	int64_t jump;
};

/* Sets the plan and resets the counts. Call it before any thread of the library runs. */
void shim_arm(const struct shim_plan *plan);
/* Ends all failures; clocks keep their offsets. Any thread. */
void shim_disarm(void);
/* Resets the clocks to the system's. Only while no thread of the library runs. */
void shim_set_clock_back(void);
/* Since shim_arm(): occurrences, and how many of them failed. */
uint64_t shim_seen(enum shim_kind kind);
uint64_t shim_refused(void);

/* What the library holds now. Threads count until their function has returned. */
struct shim_held {
	long memory, descriptors, threads;
};
struct shim_held shim_held(void);

#endif
