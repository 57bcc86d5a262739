/* SPDX-License-Identifier: BSD-2-Clause */
/* Simulated calls (stream.h). They are neither begun nor ended and have no errors or observers. */
#include "stream.h"

#include <string.h>

#include <rxwire/queue.h>

#include "engine/stream/observer.h"

ssize_t rxw_call_read(rxw_call *call, void *data, size_t length)
{
	size_t left = call->in_size - call->in_at;

	if (length > left)
		length = left;
	if (length)
		memcpy(data, call->in + call->in_at, length);
	call->in_at += length;
	return (ssize_t)length;
}

ssize_t rxw_call_read_some(rxw_call *call, void *data, size_t length)
{
	return rxw_call_read(call, data,
			     call->chunk && length > call->chunk ? call->chunk : length);
}

ssize_t rxw_call_write(rxw_call *call, const void *data, size_t length)
{
	if (length > call->out_room - call->out_size) {
		size_t room = call->out_size + length + 4096;
		uint8_t *more = realloc(call->out, room);

		if (!more)
			return -RXW_ENOMEM;
		call->out = more;
		call->out_room = room;
	}
	memcpy(call->out + call->out_size, data, length);
	call->out_size += length;
	return (ssize_t)length;
}

ssize_t rxw_call_write_part(rxw_call *call, const void *data, size_t length, bool more)
{
	(void)more;
	return rxw_call_write(call, data, length);
}

int rxw_call_begin(rxw_connection *connection, const struct rxw_call_options *options,
		   rxw_call **call)
{
	(void)connection;
	(void)options;
	*call = NULL;
	return -RXW_ESTOPPED;
}

int32_t rxw_call_end(rxw_call *call, int32_t code, enum rxw_origin *origin)
{
	(void)call;
	(void)origin;
	return code;
}

int32_t rxw_call_error(const rxw_call *call, enum rxw_origin *origin)
{
	(void)call;
	(void)origin;
	return 0;
}

unsigned rxw_call_events(rxw_call *call)
{
	(void)call;
	return 0;
}

int rxw_call_peer(const rxw_call *call, struct sockaddr_storage *address, socklen_t *address_len)
{
	(void)call;
	(void)address;
	*address_len = 0;
	return 0;
}

bool rxw_call_observed(const rxw_call *call, struct rxw_observed *seen)
{
	(void)call;
	(void)seen;
	return false;
}

void rxw_call_abort(rxw_call *call, int32_t code)
{
	(void)call;
	(void)code;
}

int rxw_call_send_end(rxw_call *call)
{
	(void)call;
	return 0;
}

int rxw_call_try_begin(rxw_connection *connection, const struct rxw_call_options *options,
		       rxw_call **call, int32_t *code)
{
	(void)connection;
	(void)options;
	(void)code;
	*call = NULL;
	return -RXW_EINVAL;
}

int rxw_connpool_try_begin(rxw_connpool *pool, const struct rxw_call_options *options,
			   rxw_call **call, int32_t *code)
{
	(void)pool;
	return rxw_call_try_begin(NULL, options, call, code);
}

bool rxw_must_not_wait(void)
{
	return false;
}

int32_t rxw_code_from_errno(int err)
{
	return err;
}

uint64_t rxw_connection_hard_timeout(rxw_connection *connection)
{
	(void)connection;
	return 0;
}

bool rxw_connection_is_inherited(const rxw_connection *connection)
{
	(void)connection;
	return false;
}

uint64_t rxw_connpool_hard_timeout(rxw_connpool *pool)
{
	(void)pool;
	return 0;
}

bool rxw_connpool_is_inherited(const rxw_connpool *pool)
{
	(void)pool;
	return false;
}

bool rxw_call_is_deferred(const rxw_call *call)
{
	(void)call;
	return false;
}

void rxw_call_unlimit(rxw_call *call)
{
	(void)call;
}

void rxw_call_note_served(rxw_call *call, uint64_t now)
{
	(void)call;
	(void)now;
}

void rxw_batch_end(void)
{
}
