/* SPDX-License-Identifier: BSD-2-Clause */
/* Search for the path MTU by padded PINGs, and black hole detection (RFC 8899; rx-protocol 5.5). */

#include "base/mtu.h"

#include <string.h>

#include "base/rtt.h"

#define FALLBACK    RXW_MTU_FALLBACK
#define TRIES       3u
#define GRANULARITY 16u /* bytes; a smaller gain does not justify a probe */
#define CONFIRM_S   600u
#define REST_S      1u
#define LEAST	    RXW_MTU_LEAST
#define ETHERNET    1500u /* most paths, */
#define BEYOND	    1536u /* and if this does not arrive, the path is one of them */
#define IPV6_LEAST  1280u /* tunnels */
#define HEADERS	    28u

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
	m->limit = UINT32_MAX;
	m->headers = HEADERS;
	m->done = m->ceiling == base;
}

/*
 * The search ends where the bounds meet; after a pause larger sizes are tried again. The pause is
 * shorter if the path carries less than the usual packet size, since a temporary route may have a
 * smaller MTU.
 */
static void end_settled_search(struct rxw_mtu *m, uint64_t now)
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

/* Worth a probe, between the bounds? */
static bool is_inside(const struct rxw_mtu *m, uint32_t size, uint32_t top)
{
	return size >= m->low + GRANULARITY && size < top;
}

/* The upper bound is often correct, and after it some common sizes: try these first, then bisect. */
static uint32_t next_size(const struct rxw_mtu *m, uint32_t top)
{
	uint32_t ethernet = ETHERNET - m->headers, least = IPV6_LEAST - m->headers;

	if (m->try_high)
		return top;
	if (is_inside(m, ethernet, top))
		return ethernet;
	if (m->low + GRANULARITY > ethernet && is_inside(m, BEYOND, top))
		return BEYOND;
	if (is_inside(m, least, top))
		return least;
	return m->low + (top - m->low + 1) / 2;
}

uint32_t rxw_mtu_probe(struct rxw_mtu *m, uint64_t now, uint64_t srtt)
{
	uint32_t top;

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
	end_settled_search(m, now);
	if (m->done)
		return 0;
	/* The peer may accept larger ones later: the search goes on then. */
	top = m->high < m->limit ? m->high : m->limit;
	if (top <= m->low || (top < m->high && top - m->low < GRANULARITY))
		return 0;
	m->probing = next_size(m, top);
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
	end_settled_search(m, now);
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
	end_settled_search(m, now);
}

/* The path carries less than the confirmed size: search at once, from the lower bound. */
static void fall_to(struct rxw_mtu *m, uint32_t size, uint32_t high)
{
	m->black_holes = 0;
	m->base = m->base < size ? m->base : size;
	m->confirmed = size;
	m->low = size;
	m->high = high;
	m->try_high = false;
	m->probing = 0;
	m->tries = 0;
	m->done = false;
	m->next_at = 0;
}

bool rxw_mtu_timeout(struct rxw_mtu *m, uint32_t outstanding_size, bool heard)
{
	uint32_t to = m->confirmed > FALLBACK ? FALLBACK : LEAST;

	if (!heard && outstanding_size <= FALLBACK)
		to = LEAST;
	if (outstanding_size <= to || m->confirmed <= to)
		return false;
	if (++m->black_holes < 2)
		return false;
	m->told = 0;
	fall_to(m, to, m->ceiling);
	/* A peer that was never heard leaves little time. */
	m->black_holes = !heard;
	return true;
}

void rxw_mtu_refused(struct rxw_mtu *m, uint64_t now)
{
	m->tries = TRIES - 1;
	rxw_mtu_lost(m, now);
	m->next_at = m->done ? m->next_at : now;
}

bool rxw_mtu_fall(struct rxw_mtu *m)
{
	uint32_t before = m->confirmed, told = m->told, to = FALLBACK;

	if (before <= LEAST)
		return false;
	m->told = 0;
	if (told >= before)
		told = 0;
	if (told != 0 && told < to)
		to = told;
	if (before <= to)
		to = LEAST;
	fall_to(m, to, told > to ? told : before);
	m->try_high = true;
	/* Larger ones than the path has carried come later. */
	m->tries = told > to ? 0 : TRIES - 1;
	return true;
}

void rxw_mtu_unsent(struct rxw_mtu *m)
{
	m->probing = 0;
}

void rxw_mtu_follow(struct rxw_mtu *m, uint32_t size, uint64_t now)
{
	if (size > m->confirmed) {
		rxw_mtu_confirmed(m, size, now);
		return;
	}
	if (m->base > size)
		m->base = size;
	m->confirmed = size;
	if (m->low > size)
		m->low = size;
}

uint32_t rxw_mtu_pack(const struct rxw_mtu *m)
{
	return m->high << 8 | (uint32_t)m->try_high << 7 | m->tries;
}

void rxw_mtu_resume(struct rxw_mtu *m, uint32_t packed)
{
	uint32_t high = packed >> 8;

	if (packed == 0 || m->done || m->probing || high <= m->low || high > m->ceiling)
		return;
	m->high = high;
	m->try_high = packed >> 7 & 1;
	m->tries = packed & 0x7f;
}

void rxw_mtu_progress(struct rxw_mtu *m)
{
	m->black_holes = 0;
}

void rxw_mtu_hint(struct rxw_mtu *m, uint32_t size)
{
	if (size < m->base) {
		if (m->enabled && size >= LEAST)
			m->told = size;
		size = m->base;
	}
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
