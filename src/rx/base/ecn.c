/* SPDX-License-Identifier: BSD-2-Clause */
/* Validation of ECN by a sender (RFC 9000, 13.4.2 and A.4). */

#include "base/ecn.h"

#include <string.h>

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
