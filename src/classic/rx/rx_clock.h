/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Times of seconds and microseconds. A struct clock holds the time of day, or a duration; its
 * microseconds are within 0 to 999999.
 */
#ifndef RXWIRE_CLASSIC_CLOCK_H
#define RXWIRE_CLASSIC_CLOCK_H

#include <sys/time.h>
#include <time.h>

#include <rx/rx_types.h>

struct clock {
	afs_int32 sec;
	afs_int32 usec;
};

/* The time is read from the system whenever it is asked for: nothing to start or to renew. */
#define clock_Init()	      ((void)0)
#define clock_NewTime()	      ((void)0)
#define clock_UpdateTime()    ((void)0)
#define clock_haveCurrentTime 1
/* The time of day in seconds. */
#define clock_Sec() (time(NULL))

/* The time of day. */
static inline void clock_GetTime(struct clock *now)
{
	struct timeval time;

	gettimeofday(&time, NULL);
	now->sec = (afs_int32)time.tv_sec;
	now->usec = (afs_int32)time.tv_usec;
}

/* Seconds, with their fraction. */
#define clock_Float(time) ((time)->sec + (time)->usec / 1e6)
/* Milliseconds from one time to a later one. */
#define clock_ElapsedTime(from, to) \
	(((to)->sec - (from)->sec) * 1000 + ((to)->usec - (from)->usec) / 1000)

#define clock_Zero(time)   ((time)->sec = 0, (time)->usec = 0)
#define clock_IsZero(time) (!(time)->sec && !(time)->usec)

#define clock_Eq(a, b)	   ((a)->sec == (b)->sec && (a)->usec == (b)->usec)
#define clock_Lt(a, b)	   ((a)->sec == (b)->sec ? (a)->usec < (b)->usec : (a)->sec < (b)->sec)
#define clock_Gt(a, b)	   clock_Lt(b, a)
#define clock_Le(a, b)	   (!clock_Lt(b, a))
#define clock_Ge(a, b)	   (!clock_Lt(a, b))

/* sum += time */
static inline void clock_Add(struct clock *sum, const struct clock *time)
{
	sum->sec += time->sec;
	sum->usec += time->usec;
	if (sum->usec >= 1000000) {
		sum->usec -= 1000000;
		sum->sec++;
	}
}

/* time -= less; `less` is not the larger one. */
static inline void clock_Sub(struct clock *time, const struct clock *less)
{
	time->sec -= less->sec;
	time->usec -= less->usec;
	if (time->usec < 0) {
		time->usec += 1000000;
		time->sec--;
	}
}

/* sum += ms milliseconds, 0 or more */
static inline void clock_Addmsec(struct clock *sum, int ms)
{
	struct clock time;

	time.sec = ms / 1000;
	time.usec = ms % 1000 * 1000;
	clock_Add(sum, &time);
}

/* sum += time², in square seconds */
static inline void clock_AddSq(struct clock *sum, const struct clock *time)
{
	double square = clock_Float(time) * clock_Float(time);
	struct clock add;

	add.sec = (afs_int32)square;
	add.usec = (afs_int32)((square - add.sec) * 1e6);
	clock_Add(sum, &add);
}

#endif
