/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers: what their paths carry, for later calls. Atomics only; each value is a hint. */
#include "base/rtt.h"
#include "proto/peer/validation.h"

#define LEARNT_LIFE (300 * RXW_SEC)
#define CWND_LIFE   RXW_SEC /* as a TCP connection keeps its window until it was idle for an RTO */
#define LEARN_AGAIN_BITS 13	 /* of a time in us */
#define TIME_BITS   48
#define TIME_MASK   ((1ull << TIME_BITS) - 1)

static uint64_t within(uint64_t value, uint64_t most)
{
	return value < most ? value : most;
}

static uint64_t whole(uint64_t rate)
{
	return within(rate >> RXW_CC_RATE_SHIFT, UINT32_MAX);
}

void rxw_peer_share(struct rxw_peer *p, uint64_t before, uint64_t rate)
{
	if ((before == 0) != (rate == 0))
		atomic_fetch_add_explicit(&p->learnt.sharing, rate != 0 ? 1 : UINT32_MAX,
					  memory_order_relaxed);
	atomic_fetch_add_explicit(&p->learnt.rates, whole(rate) - whole(before),
				  memory_order_relaxed);
}

uint64_t rxw_peer_fair(const struct rxw_peer *p)
{
	uint32_t n = atomic_load_explicit(&p->learnt.sharing, memory_order_relaxed);
	uint64_t rates = atomic_load_explicit(&p->learnt.rates, memory_order_relaxed);

	/* The two values need not belong together. */
	return n < 2 ? 0 : within(rates / n, UINT32_MAX) << RXW_CC_RATE_SHIFT;
}

void rxw_peer_learn(struct rxw_peer *p, bool client, const struct rxw_cc_path *path, uint64_t now)
{
	uint64_t rate = atomic_load_explicit(&p->learnt.rates, memory_order_relaxed);
	uint64_t us = within(path->rtt / 1000, UINT32_MAX);

	if (!rxw_peer_known(p, client, now))
		return;
	rate = within(rate > whole(path->rate) ? rate : whole(path->rate), UINT32_MAX);
	atomic_store_explicit(&p->learnt.rate_rtt, rate << 32 | us, memory_order_relaxed);
	atomic_store_explicit(&p->learnt.rate_at, now, memory_order_relaxed);
}

bool rxw_peer_recall(const struct rxw_peer *p, struct rxw_cc_path *path, uint64_t now)
{
	uint64_t pair = atomic_load_explicit(&p->learnt.rate_rtt, memory_order_relaxed);
	uint64_t at = atomic_load_explicit(&p->learnt.rate_at, memory_order_relaxed);

	path->rate = pair >> 32 << RXW_CC_RATE_SHIFT;
	path->rtt = (pair & UINT32_MAX) * 1000;
	return path->rate != 0 && path->rtt != 0 && now < at + LEARNT_LIFE;
}

void rxw_peer_forget(struct rxw_peer *p)
{
	atomic_store_explicit(&p->learnt.rate_rtt, 0, memory_order_relaxed);
}

/*
 * A round trip without the time in our own socket. That time is wrong if the clock of the kernel's time stamps was
 * set meanwhile, and a long path would then pass for a short one. Answers that were in the socket at that time belong
 * to packets sent before the first of them was read. So the one to a packet sent later has to show the same.
 */
static uint64_t net_of_wait(struct rxw_peer *p, uint64_t rtt, uint64_t waited, uint64_t now)
{
	uint64_t shown = atomic_load_explicit(&p->net_rtt, memory_order_relaxed);
	uint64_t at = atomic_load_explicit(&p->net_at, memory_order_relaxed), net = rtt - waited;

	if (waited == 0 || waited >= rtt || (at != 0 && now - rtt < at))
		return rtt;
	atomic_store_explicit(&p->net_rtt, net, memory_order_relaxed);
	atomic_store_explicit(&p->net_at, now, memory_order_relaxed);
	if (at == 0 || shown > rtt)
		return rtt;
	return net > shown ? net : shown;
}

/* The path may be another one by now: a host was moved, or its network has changed. */
void rxw_peer_learn_rtt(struct rxw_peer *p, uint64_t rtt, uint64_t waited, uint64_t now)
{
	uint64_t least = atomic_load_explicit(&p->least_rtt, memory_order_relaxed);
	uint64_t at = atomic_load_explicit(&p->least_at, memory_order_relaxed);
	bool old = !p->local && now >= at + LEARNT_LIFE;

	rtt = net_of_wait(p, rtt, waited, now);
	rtt = rtt != 0 ? rtt : 1;
	if (least == 0 || rtt < least || old)
		atomic_store_explicit(&p->least_rtt, rtt, memory_order_relaxed);
	else if (rtt > 2 * least || now < at + RXW_SEC)
		return;
	atomic_store_explicit(&p->least_at, now, memory_order_relaxed);
}

bool rxw_peer_is_near(const struct rxw_peer *p)
{
	uint64_t least = atomic_load_explicit(&p->least_rtt, memory_order_relaxed);

	return p->local || (least != 0 && least < RXW_MS);
}

/* All calls of the peer read it, on any processor. */
void rxw_peer_learn_srtt(struct rxw_peer *p, const struct rxw_rtt *rtt, uint64_t now)
{
	uint64_t at = atomic_load_explicit(&p->rtt_at, memory_order_relaxed);

	if (at != 0 && now - at < RXW_MS)
		return;
	atomic_store_explicit(&p->srtt, rtt->srtt, memory_order_relaxed);
	atomic_store_explicit(&p->rttvar, rtt->rttvar, memory_order_relaxed);
	atomic_store_explicit(&p->rtt_at, now, memory_order_relaxed);
}

/* A small value with the time in us. The same one is stored once in 8 ms, since all calls of the peer read it. */
static void learn_small(_Atomic(uint64_t) *at, uint32_t value, uint64_t now)
{
	uint64_t pair = (uint64_t)value << TIME_BITS | (now / 1000 & TIME_MASK);

	if ((atomic_load_explicit(at, memory_order_relaxed) ^ pair) >> LEARN_AGAIN_BITS)
		atomic_store_explicit(at, pair, memory_order_relaxed);
}

/* 0 = unknown, or not within the last `life` ns. */
static uint32_t recall_within(const _Atomic(uint64_t) *at, uint64_t life, uint64_t now)
{
	uint64_t pair = atomic_load_explicit(at, memory_order_relaxed);
	uint64_t age = (now / 1000 - (pair & TIME_MASK)) & TIME_MASK;

	return age < life / 1000 ? (uint32_t)(pair >> TIME_BITS) : 0;
}

static uint32_t recall_small(const _Atomic(uint64_t) *at, uint64_t now)
{
	return recall_within(at, LEARNT_LIFE, now);
}

void rxw_peer_learn_ssthresh(struct rxw_peer *p, uint32_t ssthresh, uint64_t now)
{
	learn_small(&p->ssthresh_at, ssthresh < UINT16_MAX ? ssthresh : UINT16_MAX, now);
}

uint32_t rxw_peer_recall_ssthresh(const struct rxw_peer *p, uint64_t now)
{
	return recall_small(&p->ssthresh_at, now);
}

void rxw_peer_learn_reordering(struct rxw_peer *p, uint32_t learned, uint64_t now)
{
	atomic_store_explicit(&p->reordering_at,
			      (uint64_t)learned << 32 | (uint32_t)(now / RXW_SEC),
			      memory_order_relaxed);
}

uint32_t rxw_peer_recall_reordering(const struct rxw_peer *p, uint64_t now)
{
	uint64_t pair = atomic_load_explicit(&p->reordering_at, memory_order_relaxed);
	uint32_t age = (uint32_t)(now / RXW_SEC) - (uint32_t)pair;

	return age < LEARNT_LIFE / RXW_SEC ? (uint32_t)(pair >> 32) : 0;
}

void rxw_peer_learn_cwnd(struct rxw_peer *p, bool client, uint32_t cwnd, uint64_t now)
{
	if (rxw_peer_known(p, client, now))
		learn_small(&p->learnt.cwnd_at, cwnd, now);
}

uint32_t rxw_peer_recall_cwnd(const struct rxw_peer *p, uint64_t now)
{
	return recall_within(&p->learnt.cwnd_at, CWND_LIFE, now);
}

void rxw_peer_learn_window(struct rxw_peer *p, bool client, uint32_t window, uint64_t now)
{
	if (rxw_peer_known(p, client, now))
		learn_small(&p->learnt.window_at, window, now);
}

uint32_t rxw_peer_recall_window(const struct rxw_peer *p, uint64_t now)
{
	return recall_small(&p->learnt.window_at, now);
}

void rxw_peer_learn_ecn(struct rxw_peer *p, bool client, enum rxw_ecn_state state, uint64_t now)
{
	if (rxw_peer_known(p, client, now))
		learn_small(&p->learnt.ecn_at, state, now);
}

enum rxw_ecn_state rxw_peer_recall_ecn(const struct rxw_peer *p, uint64_t now)
{
	return (enum rxw_ecn_state)recall_small(&p->learnt.ecn_at, now);
}
