/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that several files of this class use: index numbers, clock, XDR opaque<>. */
#include <string.h>

#include "common/clock.h"
#include "rxgk/rxgk_conn.h"

bool rxw_gk_index_ok(uint8_t index)
{
	return index == RXW_RXGK_INDEX || index == RXW_RXGK_INDEX_YFS;
}

int64_t rxw_gk_clock(void *unused)
{
	(void)unused;
	return wall_ns() / (NS_PER_S / RXW_RXGK_SECOND);
}

bool rxw_gk_get_opaque(struct rxw_xdr *x, const uint8_t **data, uint32_t *length, uint32_t max)
{
	uint32_t n, padded;

	if (!rxw_xdr_get_u32(x, &n))
		return false;
	/* Check the length before rounding it up, which could wrap. */
	if (n > max || n > rxw_xdr_left(x))
		return rxw_xdr_fail(x);
	padded = (n + 3) & ~3u;
	if (padded > rxw_xdr_left(x))
		return rxw_xdr_fail(x);
	*data = x->at;
	*length = n;
	x->at += padded;
	return true;
}

bool rxw_gk_put_opaque(struct rxw_xdr *x, const void *data, size_t length)
{
	size_t padded = (length + 3) & ~(size_t)3;

	if (!rxw_xdr_put_u32(x, (uint32_t)length))
		return false;
	if (padded > rxw_xdr_left(x))
		return rxw_xdr_fail(x);
	if (length)
		memcpy(x->at, data, length);
	memset(x->at + length, 0, padded - length);
	x->at += padded;
	return true;
}
