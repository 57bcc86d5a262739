/* SPDX-License-Identifier: BSD-2-Clause */
/* The search for the path MTU (RFC 8899; rx-protocol 5.5), and the validation of ECN by a sender (RFC 9000, 13.4.2 and A.4). */
#include "base/path_probe.h"

#include <string.h>

#include "base/rtt.h"

#define FALLBACK    RXW_MTU_FALLBACK
#define TRIES	    3u
#define GRANULARITY 16u /* bytes; a smaller gain does not justify a probe */
#define CONFIRM_S   600u
#define REST_S	    1u
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

#define LOST_TESTS  2u /* tests of which nothing arrived: marked packets are lost */
#define CE_UNPROVEN 3u /* reactions in a row to nothing but CE: something sets it on every packet */
#define CE_PROVEN   10u /* the same without a queue, of a path that has kept ECT(0) before */
#define AMBIGUOUS   65535u

void rxw_ecn_begin(struct rxw_ecn *e, enum rxw_ecn_state known)
{
	if (e->state != RXW_ECN_OFF)
		return;
	e->state = (uint8_t)(known >= RXW_ECN_CAPABLE ? known : RXW_ECN_TESTING);
	e->noted = e->state;
	e->proven = known == RXW_ECN_CAPABLE;
}

void rxw_ecn_again(struct rxw_ecn *e)
{
	if (e->state == RXW_ECN_OFF)
		return;
	e->state = RXW_ECN_TESTING;
	e->tested = e->lost = 0;
}

uint32_t rxw_ecn_most(const struct rxw_ecn *e, uint32_t n)
{
	uint32_t left = RXW_ECN_TEST - e->tested;

	return e->state == RXW_ECN_TESTING && n > left ? left : n;
}

void rxw_ecn_sent(struct rxw_ecn *e, uint32_t order, uint32_t n)
{
	e->open += n;
	e->sent += n;
	if (e->state != RXW_ECN_TESTING)
		return;
	if (e->tested == 0)
		e->test_order = order;
	e->tested += n;
	if (e->tested >= RXW_ECN_TEST)
		e->state = RXW_ECN_UNKNOWN;
}

void rxw_ecn_acked(struct rxw_ecn *e, uint32_t n, bool once)
{
	e->open -= n < e->open ? n : e->open;
	e->since += n;
	if (once) {
		e->acked += n;
		e->lost = 0;
	}
	if (e->since > AMBIGUOUS && !rxw_ecn_failed(e))
		e->state = RXW_ECN_SILENT;
}

void rxw_ecn_lost(struct rxw_ecn *e, uint32_t order, uint32_t n)
{
	bool tests = e->state == RXW_ECN_TESTING || e->state == RXW_ECN_UNKNOWN;

	/* Packets from before the test say nothing of it. */
	if (rxw_ecn_failed(e) ||
	    (tests && (e->tested == 0 || (int32_t)(order - e->test_order) < 0)))
		return;
	e->lost += n;
	if (e->lost < RXW_ECN_TEST)
		return;
	if (tests && ++e->tests >= LOST_TESTS)
		e->state = RXW_ECN_LOST;
	else
		rxw_ecn_again(e);
}

uint32_t rxw_ecn_report(struct rxw_ecn *e, struct rxw_ecn_counts counts)
{
	uint16_t ce = (uint16_t)(counts.ce - e->told.ce);
	uint16_t ect0 = (uint16_t)(counts.ect0 - e->told.ect0);
	uint32_t more = (uint32_t)ce + ect0;

	if (e->state == RXW_ECN_OFF || rxw_ecn_failed(e))
		return 0;
	e->told = counts;
	e->total += more;
	/* A count that fell is a large increase, modulo 2^16. */
	if (more > e->since + e->open || (int32_t)(e->total - e->sent) > 0) {
		e->state = RXW_ECN_MANGLED;
		return 0;
	}
	e->since = 0;
	e->counted += more;
	if ((int32_t)(e->counted - e->acked) < 0) {
		e->state = RXW_ECN_BLEACHED;
		return 0;
	}
	/* Packets that were sent again do not make up for marks that are missing later. */
	if (e->counted - e->acked > e->open)
		e->counted = e->acked + e->open;
	if (ect0 > 0) {
		e->kept = e->proven = true;
		e->tests = 0;
		if (e->acked > 0)
			e->state = RXW_ECN_CAPABLE;
	}
	e->ce += ce;
	return ce;
}

bool rxw_ecn_react(struct rxw_ecn *e, uint32_t acked, uint32_t sent, bool queue)
{
	if (e->cut_order != 0 && (int32_t)(acked - e->cut_order) <= 0)
		return false;
	e->cut_order = sent != 0 ? sent : 1;
	if (e->kept)
		e->ce_rounds = 0;
	else if (!e->proven || !queue)
		e->ce_rounds++;
	e->kept = false;
	if (e->ce_rounds >= (e->proven ? CE_PROVEN : CE_UNPROVEN))
		e->state = RXW_ECN_MANGLED;
	else if (e->state == RXW_ECN_UNKNOWN)
		rxw_ecn_again(e);
	return true;
}

const char *rxw_ecn_name(enum rxw_ecn_state state)
{
	static const char *const names[] = {"off",	"testing", "unknown", "capable",
					    "bleached", "mangled", "lost",    "silent"};

	return names[state];
}
