/* SPDX-License-Identifier: BSD-2-Clause */
/* What every module of the file server uses: the log, the clock, hashes, the service manager. */
#ifndef FILESERVER_BASE_H
#define FILESERVER_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rxwire/config.h>

#include "common/clock.h"

/* Size of the buffer for the one line that explains why something could not be started. */
#define FSD_MESSAGE_MAX 512

/* -- the clock -- */

/* Seconds of the monotonic clock. */
static inline uint64_t fsd_now(void)
{
	return monotonic_ns() / NS_PER_S;
}

/* -- hashes: fast, not for keys that an attacker chooses -- */

/* Bijective in `word` for any `h`: a change of one word always changes the result. */
static inline uint64_t fsd_mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static inline uint64_t fsd_hash(const void *data, size_t length, uint64_t seed)
{
	const uint8_t *at = data;
	uint64_t h = fsd_mix(seed, length), word;

	for (; length >= 8; length -= 8, at += 8) {
		memcpy(&word, at, 8);
		h = fsd_mix(h, word);
	}
	word = 0;
	memcpy(&word, at, length);
	h = fsd_mix(h, word);
	return fsd_mix(h, 0xd6e8feb86659fd93ull);
}

/* -- the log: "<N>text" for the journal, "rxfsd: text" elsewhere, always on stderr -- */

/* Detect whether stderr is the journal's stream ($JOURNAL_STREAM). Once, before other threads. */
void fsd_log_start(void);
/* Suppress lines less urgent than `level`; default RXW_LOG_INFO. Any thread. */
void fsd_log_level(enum rxw_log_level level);
/* Write one line with one write(). Any thread. */
void fsd_log(enum rxw_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * Hold lines back (up to 4 KiB of them) until the outcome of the start is known: a server that
 * cannot start reports that in one line. Release with `print` false to discard the held lines.
 */
void fsd_log_hold(void);
void fsd_log_release(bool print);
/* For rxw_config.log. */
void fsd_log_library(void *arg, enum rxw_log_level level, const char *line);

/* -- the limit on stopping -- */

struct fsd_limit;
/*
 * Unless fsd_limit_end() is called within `ms`: call explain(arg) on a thread of its own, then end
 * the process with EXIT_FAILURE, whatever its other threads are blocked in. NULL without memory or
 * a thread: there is no limit.
 */
struct fsd_limit *fsd_limit_start(uint64_t ms, void (*explain)(void *arg), void *arg);
void fsd_limit_end(struct fsd_limit *limit); /* NULL is allowed */

/* -- the service manager -- */

/*
 * Send a state to $NOTIFY_SOCKET: "READY=1", "STOPPING=1\nSTATUS=...". Returns 1 if it was sent, 0
 * without a service manager, -1 with errno. The variable is left as it is.
 */
int fsd_notify(const char *state);

#endif
