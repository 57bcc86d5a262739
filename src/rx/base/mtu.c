/* SPDX-License-Identifier: BSD-2-Clause */
/* Search for the path MTU by padded PINGs, and black hole detection (RFC 8899; rx-protocol 5.5). */

#include "base/mtu.h"

#include <string.h>

#include "base/rtt.h"

#define FALLBACK    1200u
#define TRIES       3u
#define GRANULARITY 16u /* bytes; a smaller gain does not justify a probe */
#define CONFIRM_S   600u
#define REST_S      1u

void rxw_mtu_init(struct rxw_mtu *m, uint32_t base, uint32_t ceiling, bool enabled)
{
	memset(m, 0, sizeof(*m));
	m->base = base;
	m->confirmed = base;
	m->ceiling = enabled && ceiling > base ? ceiling : base;
	m->usual = base;
	m->rest_s = REST_S;
	m->low = base;
	m->high = m->ceiling;
	m->try_high = true;
	m->enabled = enabled;
	m->done = m->ceiling == base;
}

/*
 * The search ends where the bounds meet; after a pause larger sizes are tried again. The pause is
 * shorter if the path carries less than the usual packet size, since a temporary route may have a
 * smaller MTU.
 */
static void settle(struct rxw_mtu *m, uint64_t now)
{
	if (m->done || m->high - m->low >= GRANULARITY || (m->try_high && m->high > m->low))
		return;
	m->done = true;
	if (m->confirmed >= m->usual) {
		m->next_at = now + CONFIRM_S * RXW_SEC;
		return;
	}
	m->next_at = now + m->rest_s * RXW_SEC;
	m->rest_s = m->rest_s < CONFIRM_S / 2 ? m->rest_s * 2 : CONFIRM_S;
}

uint32_t rxw_mtu_probe(struct rxw_mtu *m, uint64_t now, uint64_t srtt)
{
	if (m->probing || now < m->next_at)
		return 0;
	if (m->done) {
		if (m->confirmed >= m->ceiling)
			return 0;
		m->done = false;
		m->low = m->confirmed;
		m->high = m->ceiling;
		m->try_high = true;
		m->tries = 0;
	}
	settle(m, now);
	if (m->done)
		return 0;
	/* The upper bound is often correct: try it first, then bisect. */
	m->probing = m->try_high ? m->high : m->low + (m->high - m->low + 1) / 2;
	m->next_at = now + srtt;
	return m->probing;
}

void rxw_mtu_confirmed(struct rxw_mtu *m, uint32_t size, uint64_t now)
{
	if (m->probing && size >= m->probing) {
		m->probing = 0;
		m->tries = 0;
	}
	if (size > m->ceiling)
		size = m->ceiling;
	if (size <= m->confirmed)
		return;
	m->confirmed = size;
	if (size >= m->usual)
		m->rest_s = REST_S;
	if (m->low < size)
		m->low = size;
	if (m->high < size)
		m->high = size;
	settle(m, now);
}

void rxw_mtu_lost(struct rxw_mtu *m, uint64_t now)
{
	uint32_t size = m->probing;

	if (!size)
		return;
	m->probing = 0;
	if (++m->tries < TRIES)
		return;
	m->tries = 0;
	m->try_high = false;
	if (size > m->low && size <= m->high)
		m->high = size - 1;
	settle(m, now);
}

bool rxw_mtu_timeout(struct rxw_mtu *m, uint32_t outstanding_size)
{
	if (outstanding_size <= FALLBACK || m->confirmed <= FALLBACK)
		return false;
	if (++m->black_holes < 2)
		return false;
	m->black_holes = 0;
	m->base = m->base < FALLBACK ? m->base : FALLBACK;
	m->confirmed = FALLBACK;
	m->low = FALLBACK;
	m->high = m->ceiling;
	m->try_high = false;
	m->probing = 0;
	m->tries = 0;
	m->done = false;
	m->next_at = 0; /* start the search at once, from the lower bound */
	return true;
}

void rxw_mtu_progress(struct rxw_mtu *m)
{
	m->black_holes = 0;
}

void rxw_mtu_hint(struct rxw_mtu *m, uint32_t size)
{
	if (size < m->base)
		size = m->base;
	if (size >= m->high)
		return;
	m->high = size;
	m->try_high = true;
	m->tries = 0;
	if (m->probing > size)
		m->probing = 0;
	if (m->confirmed > size)
		m->confirmed = size;
	if (m->low > m->confirmed)
		m->low = m->confirmed;
}
