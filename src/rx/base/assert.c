/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a program in which an invariant does not hold. */
#include <assert.h>

#include "base/assert.h"

void rxw_assertion_failed(const char *file, int line)
{
	__assert_fail("an invariant", file, (unsigned)line, "librxwire"); /* of glibc and musl */
}
