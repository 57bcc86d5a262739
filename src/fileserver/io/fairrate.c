/* SPDX-License-Identifier: BSD-2-Clause */
/* The rate that an address has at least while the server is saturated. */
#include "fileserver/io/fairrate.h"

#include <assert.h>

#include "common/clock.h"

#define BURST	     ((uint64_t)256 << 10) /* bytes that an address may be ahead of the clock */
#define BURST_MS     4			   /* or what the clock counts in that time */
#define BURSTS	     4 /* most debt: what was sent while there was time left is forgotten soon */
#define FORGOTTEN    ((uint64_t)1 << 40)
#define OPEN	     (10 * (uint64_t)NS_PER_MS) /* no flow waits for so long, */
#define OPEN_EACH    (5 * (uint64_t)NS_PER_S)	/* so often */
#define PERIOD	     (200 * (uint64_t)NS_PER_MS)
/* Limits of the clock's rate, in 1/256 of the mean: an address that gets the mean does not wait because of a fluctuation. */
#define TIMES_LEAST  320u
#define TIMES_MOST   (256u << 14)
#define AHEAD_MS     4				/* of the clock, when the server has time left */
#define LONGEST_LOOK (20 * (uint64_t)NS_PER_MS) /* the thread that looks may be late */
#define IDLE_WEIGHT   16			 /* looks */
#define RECENT_WEIGHT 16			 /* looks */
#define IDLE_MOST    (65536u / 5 * 4)

/* Debts of an earlier time are forgotten. */
void fair_rate_begin(struct fair_rate *rate, uint64_t now)
{
	*rate = (struct fair_rate){.clock = rate->clock + FORGOTTEN,
				   .times = TIMES_LEAST,
				   .now = now,
				   .open = true,
				   .open_ns = now,
				   .began_ns = now,
				   .period = rate->period + 1};
}

/* Bytes that the clock counts in a millisecond. */
static uint64_t count_of_ms(const struct fair_rate *rate)
{
	return rate->mean * rate->times / 256;
}

static uint64_t burst_of(const struct fair_rate *rate)
{
	uint64_t some = BURST_MS * count_of_ms(rate);

	return some > BURST ? some : BURST;
}

static uint64_t rate_between(uint64_t bytes, uint64_t took)
{
	return took ? bytes * NS_PER_MS / took : 0;
}

/* Nobody waits for a while, so that what the server can send does not depend on who had to wait before. */
static void measure_capacity(struct fair_rate *rate, uint64_t now)
{
	uint64_t took = now - rate->open_ns, got;

	if (!rate->open && now >= rate->open_ns) {
		rate->open = true;
		rate->open_ns = now;
		rate->opened = rate->all;
	} else if (rate->open && took >= OPEN && rate->all > rate->opened) {
		got = rate_between(rate->all - rate->opened, took);
		rate->capacity = rate->capacity ? (3 * rate->capacity + got) / 4 : got;
		rate->open = false;
		rate->open_ns = now + OPEN_EACH;
	}
}

/* Addresses that have sent nothing for a period do not count. */
static void end_period(struct fair_rate *rate, uint64_t now)
{
	uint64_t took = now - rate->began_ns, got = rate_between(rate->sent, took);

	if (took < (rate->mean ? PERIOD : OPEN) || !rate->senders)
		return;
	rate->mean = (got > rate->capacity ? got : rate->capacity) / rate->senders + 1;
	rate->senders_before = rate->senders;
	rate->senders = 0;
	rate->sent = 0;
	rate->began_ns = now;
	rate->period++;
}

static void note_recent(struct fair_rate *rate, uint64_t took)
{
	uint64_t got = rate_between(rate->all - rate->looked, took);

	if (!took)
		return;
	rate->recent = rate->recent - rate->recent / RECENT_WEIGHT + got / RECENT_WEIGHT;
	rate->looked = rate->all;
}

/* Flows wait, although the server has time left, or sends less than it can: the clock goes ahead, and faster from now on. */
static void speed_up(struct fair_rate *rate)
{
	rate->clock += AHEAD_MS * count_of_ms(rate);
	rate->times += rate->times / 4;
	if (rate->times > TIMES_MOST)
		rate->times = TIMES_MOST;
}

static void slow_down(struct fair_rate *rate)
{
	rate->times -= rate->times / 50;
	if (rate->times < TIMES_LEAST)
		rate->times = TIMES_LEAST;
}

bool fair_rate_look(struct fair_rate *rate, bool idle, bool waiting, uint64_t now)
{
	uint64_t took = now - rate->now;

	assert(now >= rate->now && rate->times >= TIMES_LEAST);
	rate->now = now;
	note_recent(rate, took);
	if (took > LONGEST_LOOK)
		took = LONGEST_LOOK;
	rate->clock += count_of_ms(rate) * took / NS_PER_MS;
	rate->idle += (idle ? 65536u / IDLE_WEIGHT : 0) - rate->idle / IDLE_WEIGHT;
	measure_capacity(rate, now);
	end_period(rate, now);
	if (waiting && (idle || rate->recent < rate->capacity / 4 * 3))
		speed_up(rate);
	else
		slow_down(rate);
	return rate->idle <= IDLE_MOST;
}

static void settle_account(const struct fair_rate *rate, struct fair_account *account)
{
	uint64_t passed = rate->clock - account->seen;

	assert(account->seen <= rate->clock);
	account->debt -= passed < account->debt ? passed : account->debt;
	account->seen = rate->clock;
}

uint64_t fair_rate_permits(const struct fair_rate *rate, struct fair_account *account)
{
	uint64_t burst = burst_of(rate);

	/* The only sender waits for nobody. */
	if (!rate->mean || rate->open || (rate->senders < 2 && rate->senders_before < 2))
		return UINT64_MAX;
	settle_account(rate, account);
	return account->debt < burst ? burst - account->debt : 0;
}

void fair_rate_charge(const struct fair_rate *rate, struct fair_account *account, uint64_t bytes)
{
	uint64_t most = BURSTS * burst_of(rate);

	settle_account(rate, account);
	account->debt = account->debt + bytes < most ? account->debt + bytes : most;
}

void fair_rate_count(struct fair_rate *rate, struct fair_account *account, uint64_t bytes)
{
	rate->sent += bytes;
	rate->all += bytes;
	rate->senders += account->period != rate->period;
	account->period = rate->period;
	assert(rate->senders > 0);
}
