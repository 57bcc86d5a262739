/* SPDX-License-Identifier: BSD-2-Clause */
/* Failures of the machine, not of a caller: a full disk, a disk that fails, a shortage of files or memory. */
#ifndef FILESERVER_FAILURES_H
#define FILESERVER_FAILURES_H

#include <stdatomic.h>
#include <stdint.h>

#include "volume/interface.h"

enum fsd_failure {
	FSD_FAILURE_SPACE,
	FSD_FAILURE_READ_ONLY, /* the file system under a store that can be written */
	FSD_FAILURE_IO,
	FSD_FAILURE_FILES,
	FSD_FAILURE_MEMORY,
	FSD_FAILURES /* their number; also: none of them */
};

/* Zeroed. Any thread. */
struct fsd_failures {
	_Atomic uint64_t count[FSD_FAILURES];
	_Atomic uint64_t told[FSD_FAILURES];  /* the last line of the log; monotonic ns, 0 = never */
	_Atomic uint64_t quiet[FSD_FAILURES]; /* failures since then */
};

/* The failure that a result of a store means. */
enum fsd_failure fsd_failure_of(int result);
/* Count a call on an object, and log the first failure of its kind in each minute. */
void fsd_failures_note(struct fsd_failures *failures, enum fsd_failure kind,
		       const struct store_fid *fid);
/* The name of a kind in the metrics. */
const char *fsd_failure_name(enum fsd_failure kind);

#endif
