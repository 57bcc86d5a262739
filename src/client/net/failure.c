/* SPDX-License-Identifier: BSD-2-Clause */
/* Failures as text. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/net/record.h"

int cl_fail(struct rxafs_failure *failure, int number, const char *format, ...)
{
	va_list args;

	if (!failure)
		return -number;
	memset(failure, 0, sizeof(*failure));
	failure->number = number;
	failure->origin = RXAFS_LOCALLY;
	va_start(args, format);
	vsnprintf(failure->text, sizeof(failure->text), format, args);
	va_end(args);
	return -number;
}
