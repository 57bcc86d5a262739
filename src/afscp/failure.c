/* SPDX-License-Identifier: BSD-2-Clause */
/* Failures from codes of calls. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/numbers.h"
#include "afscp/failure.h"

#define ERRNO_END 134 /* above the errno values that servers translate */

/*
 * Format into `text`. Of a line that is too long the middle is left out: a long path must not hide the
 * reason behind it.
 */
static void put_shortened_text(char *text, size_t size, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));
static void put_shortened_text(char *text, size_t size, const char *format, va_list args)
{
	size_t begin = size / 3, rest = size - begin - 3; /* with the NUL */
	char *whole;
	int length = vasprintf(&whole, format, args);

	if (length < 0) {
		snprintf(text, size, "no memory");
		return;
	}
	if ((size_t)length < size)
		memcpy(text, whole, (size_t)length + 1);
	else
		snprintf(text, size, "%.*s...%s", (int)begin, whole, whole + length + 1 - rest);
	free(whole);
}

void afs_error_text(struct afs_error *error, const char *format, ...)
{
	va_list args;

	memset(error, 0, offsetof(struct afs_error, text));
	error->origin = RXW_ORIGIN_LOCAL;
	va_start(args, format);
	put_shortened_text(error->text, sizeof(error->text), format, args);
	va_end(args);
}

/* Whether the reason may go away: servers restart, volumes are busy or move. */
static bool may_pass(int32_t code, enum rxw_origin origin)
{
	switch (code) {
	case RXW_RESTARTING:
	case RXW_CALL_DEAD:    /* from the peer: this side was silent, since it was suspended */
	case RXW_CALL_TIMEOUT: /* from the peer: this side was slow to read */
	case RXW_CALL_MSGSIZE: /* packets were too large for the path: the next call has smaller ones */
		return true;
	case RXW_NETWORK_RESET:
		return origin != RXW_ORIGIN_PEER;
	case AFS_VBUSY:
	case AFS_VOFFLINE:
	case AFS_VSALVAGE:
	case AFS_VSALVAGING:
	case AFS_VNOSERVICE:
	case AFS_VNOVOL:
	case AFS_VMOVED:
		return origin == RXW_ORIGIN_PEER;
	default:
		return false;
	}
}

/* The errno value that a server's code stands for; 0 for codes of AFS and of Rx. */
static int errno_of(int32_t code, enum rxw_origin origin)
{
	int number = rxw_code_to_errno(code);

	if (origin != RXW_ORIGIN_PEER || number <= 0 || number >= ERRNO_END)
		return 0;
	/* Numbers from 100 on that were not translated are codes of volumes. */
	return number == code && number >= 100 ? 0 : number;
}

void afs_error_code(struct afs_error *error, const char *what, int32_t code, enum rxw_origin origin)
{
	int number = errno_of(code, origin);
	const char *why = number ? strerror(number) : rxw_code_text_from(code, origin);

	if (code == RXW_CALL_DEAD)
		why = origin == RXW_ORIGIN_PEER
			      ? "the server heard nothing from this side, and ended the call"
			      : "no answer; check that a server is running there";
	afs_error_text(error, "%s: %s (code %d)", what, why, code);
	error->code = code;
	error->origin = origin;
	error->number = number;
	error->passing = may_pass(code, origin);
}
