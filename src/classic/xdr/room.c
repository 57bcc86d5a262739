/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for data of a size from the network, and operations that streams lack. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "room.h"

#define STEP_BYTES (64 * 1024)

void *classic_xdr_grow(void *array, size_t *room, size_t count, size_t size)
{
	size_t step = STEP_BYTES / size, wanted; /* an element has at least one byte */
	char *grown;

	assert(*room < count);
	if (step < *room)
		step = *room;
	if (!step)
		step = 1;
	wanted = step < count - *room ? *room + step : count;
	if (wanted > SIZE_MAX / size)
		return NULL;
	grown = realloc(array, wanted * size);
	if (!grown)
		return NULL;
	memset(grown + *room * size, 0, (wanted - *room) * size);
	*room = wanted;
	return grown;
}

bool_t classic_xdr_no_position(XDR *xdrs, u_int position)
{
	(void)xdrs;
	(void)position;
	return FALSE;
}

afs_int32 *classic_xdr_no_inline(XDR *xdrs, u_int count)
{
	(void)xdrs;
	(void)count;
	return NULL;
}
