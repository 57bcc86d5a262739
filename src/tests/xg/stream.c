/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of stream.h. */
#include "stream.h"

#include <string.h>

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
