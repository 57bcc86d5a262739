/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The streams of a call. Small writes are gathered, and small reads are served from what the
 * library has lent, so that coders of single numbers are cheap. No more is taken from the library
 * than it has lent, so readers of all kinds can take turns.
 */
#include <limits.h>
#include <time.h>

#include "core.h"

/* Reads and writes of this size or more go past the gathered bytes. */
#define LARGE CLASSIC_WRITES

/*
 * The beginning of a reply ends its request. That is not an error: the server has read as much as
 * it needs.
 */
static bool is_request_answered(rxw_call *call)
{
	return !rxw_call_error(call, NULL) &&
	       rxw_call_events(call) & (RXW_EVENT_READ | RXW_EVENT_DONE);
}

static bool write_now(struct rx_call *call, const void *data, size_t length)
{
	ssize_t n = rxw_call_write(call->call, data, length);

	call->sent_s = (int)time(NULL);
	return n == (ssize_t)length ||
	       (n == -RXW_ECALL && !call->connection->server && is_request_answered(call->call));
}

bool classic_write_out(struct rx_call *call)
{
	size_t filled = call->filled;

	assert(filled <= sizeof(call->writes));
	call->filled = 0;
	return !filled || (call->call && write_now(call, call->writes, filled));
}

/* Drop the room of an rx_WritevAlloc() that was not used. */
static void drop_reserved_room(struct rx_call *call)
{
	call->reserved = false;
	(void)rxw_call_commit(call->call, 0);
}

/* -- Write ---------------------------------------------------------------------------------------- */

/* Prepare the call for a write. False: it cannot be written to. */
static bool prepare_write(struct rx_call *call)
{
	if (!call->call || (!call->connection->server && call->reading))
		return false;
	if (call->reserved)
		drop_reserved_room(call);
	return true;
}

int rx_WriteProc(struct rx_call *call, char *buffer, int n)
{
	size_t length = n > 0 ? (size_t)n : 0;

	if (!prepare_write(call))
		return 0;
	if (length > sizeof(call->writes) - call->filled && !classic_write_out(call))
		return 0;
	call->sent += length;
	if (length >= LARGE)
		return write_now(call, buffer, length) ? n : 0;
	assert(length <= sizeof(call->writes) - call->filled);
	memcpy(call->writes + call->filled, buffer, length);
	call->filled += length;
	return (int)length;
}

int rx_WriteProc32(struct rx_call *call, afs_int32 *value)
{
	if (call->filled && !call->reserved && !(call->reading && !call->connection->server) &&
	    sizeof(call->writes) - call->filled >= sizeof(*value)) {
		memcpy(call->writes + call->filled, value, sizeof(*value));
		call->filled += sizeof(*value);
		call->sent += sizeof(*value);
		return sizeof(*value);
	}
	return rx_WriteProc(call, (char *)value, sizeof(*value));
}

int rx_WritevAlloc(struct rx_call *call, struct iovec *iov, int *count, int most, int n)
{
	unsigned used = most > 0 ? (unsigned)most : 0;
	ssize_t room;

	*count = 0;
	if (!used || n < 1 || !prepare_write(call) || !classic_write_out(call))
		return 0;
	room = rxw_call_reserve(call->call, (size_t)n, iov, &used);
	if (room <= 0)
		return 0;
	call->reserved = true;
	*count = (int)used;
	return (int)room;
}

/* Copy slices that are not from rx_WritevAlloc(). */
static int write_slices(struct rx_call *call, const struct iovec *iov, int count, int n)
{
	int done = 0;

	for (int i = 0; i < count && done < n; i++) {
		int part = iov[i].iov_len < (size_t)(n - done) ? (int)iov[i].iov_len : n - done;

		if (rx_WriteProc(call, iov[i].iov_base, part) != part)
			return 0;
		done += part;
	}
	return done;
}

int rx_WritevProc(struct rx_call *call, struct iovec *iov, int count, int n)
{
	if (n < 0 || !call->call)
		return 0;
	if (!call->reserved)
		return write_slices(call, iov, count, n);
	call->reserved = false;
	call->sent += (uint64_t)n;
	call->sent_s = (int)time(NULL);
	return rxw_call_commit(call->call, (size_t)n) ? 0 : n;
}

/*
 * A flush ends a request, as in classic Rx: servers that take a request only when it is complete,
 * as the kernel's client does with callbacks, would otherwise wait for the read of multi_Rx(),
 * which waits for them.
 */
void rx_FlushWrite(struct rx_call *call)
{
	if (!prepare_write(call) || !classic_write_out(call))
		return;
	if (call->connection->server) {
		(void)rxw_call_flush(call->call);
	} else {
		call->reading = true;
		(void)rxw_call_send_end(call->call);
	}
}

/* -- Read ----------------------------------------------------------------------------------------- */

/* Send the gathered bytes of the request before its reply is read. False: the call has failed. */
static bool prepare_read(struct rx_call *call)
{
	if (!call->call)
		return false;
	if (call->reserved)
		drop_reserved_room(call);
	if (call->filled && !classic_write_out(call))
		return false;
	call->reading = true;
	return true;
}

static size_t copy_lent_bytes(struct rx_call *call, void *buffer, size_t length)
{
	if (length > call->left)
		length = call->left;
	if (!length)
		return 0; /* nothing was lent yet: no address */
	memcpy(buffer, call->at, length);
	call->at += length;
	call->left -= length;
	return length;
}

/* Have the library lend the next bytes. False: the end of the stream, or the call has failed. */
static bool borrow_bytes(struct rx_call *call)
{
	struct iovec slice;
	unsigned count = 1;
	ssize_t n = rxw_call_readv(call->call, INT_MAX, &slice, &count);

	if (n <= 0)
		return false;
	call->received_s = (int)time(NULL);
	call->received += (uint64_t)n;
	call->at = slice.iov_base;
	call->left = (size_t)n;
	return true;
}

int rx_ReadProc(struct rx_call *call, char *buffer, int n)
{
	size_t length = n > 0 ? (size_t)n : 0, done;

	if (!prepare_read(call))
		return 0;
	done = copy_lent_bytes(call, buffer, length);
	while (done < length) {
		if (length - done >= LARGE) {
			ssize_t more = rxw_call_read(call->call, buffer + done, length - done);

			if (more > 0) {
				call->received_s = (int)time(NULL);
				call->received += (uint64_t)more;
				done += (size_t)more;
			}
			return (int)done;
		}
		if (!borrow_bytes(call))
			break;
		done += copy_lent_bytes(call, buffer + done, length - done);
	}
	return (int)done;
}

int rx_ReadProc32(struct rx_call *call, afs_int32 *value)
{
	if (call->left >= sizeof(*value) && !call->filled && !call->reserved) {
		memcpy(value, call->at, sizeof(*value));
		call->at += sizeof(*value);
		call->left -= sizeof(*value);
		return sizeof(*value);
	}
	return rx_ReadProc(call, (char *)value, sizeof(*value));
}

int rx_ReadvProc(struct rx_call *call, struct iovec *iov, int *count, int most, int n)
{
	unsigned used = most > 0 ? (unsigned)most : 0;
	ssize_t got;

	*count = 0;
	if (!used || n < 1 || !prepare_read(call))
		return 0;
	if (call->left) {
		iov->iov_base = (void *)(uintptr_t)call->at;
		iov->iov_len = call->left < (size_t)n ? call->left : (size_t)n;
		call->at += iov->iov_len;
		call->left -= iov->iov_len;
		*count = 1;
		return (int)iov->iov_len;
	}
	got = rxw_call_readv(call->call, (size_t)n, iov, &used);
	if (got <= 0)
		return 0;
	call->received_s = (int)time(NULL);
	call->received += (uint64_t)got;
	*count = (int)used;
	return (int)got;
}
