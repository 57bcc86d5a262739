/* SPDX-License-Identifier: BSD-2-Clause */
#include "fileserver/service/failures.h"

#include <errno.h>
#include <stdio.h>

#include "fileserver/base/base.h"

#define QUIET_NS (60ull * NS_PER_S)

static const struct {
	const char *name, *text;
} kinds[FSD_FAILURES] = {
	[FSD_FAILURE_SPACE] = {"space",
			       "the disk is full; remove files or old clones, or add space"},
	[FSD_FAILURE_READ_ONLY] =
		{"read-only",
		 "the file system is read-only; look for errors of the disk in the kernel's log"},
	[FSD_FAILURE_IO] =
		{"io", "input or output error; look at the kernel's log, then run rxvol check"},
	[FSD_FAILURE_FILES] = {"files",
			       "too many open files; raise LimitNOFILE of the unit, or ulimit -n"},
	[FSD_FAILURE_MEMORY] = {"memory", "no memory"},
};

enum fsd_failure fsd_failure_of(int result)
{
	switch (result) {
	case STORE_VDISKFULL:
	case -ENOSPC:
	case -EDQUOT:
		return FSD_FAILURE_SPACE;
	case -EROFS:
		return FSD_FAILURE_READ_ONLY;
	case -EIO:
		return FSD_FAILURE_IO;
	case -EMFILE:
	case -ENFILE:
		return FSD_FAILURE_FILES;
	case -ENOMEM:
		return FSD_FAILURE_MEMORY;
	default:
		return FSD_FAILURES;
	}
}

const char *fsd_failure_name(enum fsd_failure kind)
{
	return kinds[kind].name;
}

void fsd_failures_note(struct fsd_failures *failures, enum fsd_failure kind,
		       const struct store_fid *fid)
{
	uint64_t now = monotonic_ns(), told = atomic_load(&failures->told[kind]), quiet;
	char more[64] = "";

	atomic_fetch_add(&failures->count[kind], 1);
	/* One thread takes the minute, and logs. */
	if ((told && now < told + QUIET_NS) ||
	    !atomic_compare_exchange_strong(&failures->told[kind], &told, now)) {
		atomic_fetch_add(&failures->quiet[kind], 1);
		return;
	}
	quiet = atomic_exchange(&failures->quiet[kind], 0);
	if (quiet)
		snprintf(more, sizeof(more), " (%llu more since the last such line)",
			 (unsigned long long)quiet);
	fsd_log(RXW_LOG_ERROR, "a call on object %u.%u.%u failed: %s%s", fid->volume, fid->vnode,
		fid->unique, kinds[kind].text, more);
}
