/* SPDX-License-Identifier: BSD-2-Clause */
/* The C library returns memory that was freed to the system. */
#include <assert.h>
#include <malloc.h>

#include "fileserver/base/base.h"

#define LEAST ((size_t)64 << 20)

static void trim_memory(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

bool fsd_trim(struct fsd_trim *trim, size_t used, size_t peak)
{
	if (peak > trim->peak && peak > trim->most)
		trim->most = peak; /* between two looks */
	trim->peak = peak;
	if (used > trim->most)
		trim->most = used;
	assert(trim->most >= used);
	if (trim->most - used < LEAST)
		return false;
	trim_memory();
	trim->most = used;
	return true;
}
