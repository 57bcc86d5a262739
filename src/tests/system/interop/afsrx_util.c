/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers of the programs that run against OpenAFS's own Rx library. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "afsrx.h"

#include <rx/rx_globals.h>

/*
 * A prime, so that no packet or buffer size divides it: moved or duplicated packets are detected.
 */
#define PATTERN_PERIOD 65521

/*
 * The static library, which alone has the switch for --hot-thread, calls two helpers of its own
 * build tree that its package lacks. Weak, for packages that include them.
 */
int rk_socket(int domain, int type, int protocol);
int hc_RAND_bytes(void *buf, size_t len);

__attribute__((weak)) int rk_socket(int domain, int type, int protocol)
{
	return socket(domain, type, protocol);
}

__attribute__((weak)) int hc_RAND_bytes(void *buf, size_t len)
{
	return getrandom(buf, len, 0) == (ssize_t)len;
}

static void say(const char *fmt, va_list ap)
{
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void afsrx_usage_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	exit(2);
}

void afsrx_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	exit(1);
}

uint64_t afsrx_number(const char *option, const char *text, uint64_t low, uint64_t high)
{
	char *end;
	unsigned long long value;
	int shift = 0;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (*end == 'K')
		shift = 10;
	else if (*end == 'M')
		shift = 20;
	else if (*end == 'G')
		shift = 30;
	if (shift)
		end++;
	if (errno || end == text || *end || text[0] == '-' || value > (UINT64_MAX >> shift))
		afsrx_usage_die("%s: \"%s\" is not a number", option, text);
	value <<= shift;
	if (value < low || value > high)
		afsrx_usage_die("%s: %s is not in %" PRIu64 "..%" PRIu64, option, text, low, high);
	return value;
}

bool afsrx_setup_option(struct afsrx_setup *setup, int opt, const char *arg)
{
	switch (opt) {
	case 'W':
		setup->window = (int)afsrx_number("--window", arg, 1, 255);
		return true;
	case 'u':
		setup->udp_buffer = (int)afsrx_number("--udp-buffer", arg, 65536, 1 << 30);
		return true;
	case 'Z':
		setup->dead = (int)afsrx_number("--dead", arg, 1, 3600);
		return true;
	case 'N':
		setup->no_jumbo = true;
		return true;
	case 'H':
		setup->hot_thread = true;
		return true;
	case 'X':
		setup->rxkad = arg;
		return true;
	default:
		return false;
	}
}

void afsrx_setup_before(const struct afsrx_setup *setup)
{
	if (setup->udp_buffer)
		rx_UdpBufSize = setup->udp_buffer;
	if (setup->no_jumbo)
		rx_SetNoJumbo();
	/* The library's default is 256 spare packets; many large windows need more. */
	rx_extraPackets = 4096;
}

void afsrx_setup_after(const struct afsrx_setup *setup)
{
	if (setup->window) {
		rx_SetMaxReceiveWindow(setup->window);
		rx_SetMaxSendWindow(setup->window);
	}
	/* rx_Init() resets it to 12 s. */
	if (setup->dead)
		rx_SetRxDeadTime(setup->dead);
	if (setup->hot_thread)
		rx_EnableHotThread();
}

double afsrx_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void afsrx_usage_now(struct afsrx_usage *out)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	out->user_s = (double)ru.ru_utime.tv_sec + (double)ru.ru_utime.tv_usec / 1e6;
	out->sys_s = (double)ru.ru_stime.tv_sec + (double)ru.ru_stime.tv_usec / 1e6;
	out->switches = ru.ru_nvcsw + ru.ru_nivcsw;
}

/* Two periods, so that a run may start anywhere in the first and be compared in one piece. */
static unsigned char pattern[2 * PATTERN_PERIOD];

void afsrx_pattern_init(void)
{
	uint32_t x = 0x9e3779b9; /* as in rxperf, so that each side can verify the other's data */

	for (size_t i = 0; i < PATTERN_PERIOD; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		pattern[i] = pattern[i + PATTERN_PERIOD] = (unsigned char)(x >> 24);
	}
}

void afsrx_fill(unsigned char *buf, size_t len, uint64_t pos)
{
	while (len) {
		size_t n = len < PATTERN_PERIOD ? len : PATTERN_PERIOD;

		memcpy(buf, pattern + pos % PATTERN_PERIOD, n);
		buf += n;
		len -= n;
		pos += n;
	}
}

size_t afsrx_mismatch(const unsigned char *buf, size_t len, uint64_t pos)
{
	size_t bad = 0;

	while (len) {
		size_t n = len < PATTERN_PERIOD ? len : PATTERN_PERIOD;
		const unsigned char *want = pattern + pos % PATTERN_PERIOD;

		if (memcmp(buf, want, n))
			for (size_t i = 0; i < n; i++)
				bad += buf[i] != want[i];
		buf += n;
		len -= n;
		pos += n;
	}
	return bad;
}

/*
 * The library returns a short count when the call has failed. A stream that ended early has no
 * error of its own, so it gets the protocol's "end of data".
 */
static int call_error(struct rx_call *call)
{
	int code = rx_Error(call);

	return code ? code : RX_EOF;
}

int afsrx_write(struct rx_call *call, const void *buf, size_t len)
{
	return rx_Write(call, (char *)buf, (int)len) == (int)len ? 0 : call_error(call);
}

int afsrx_read(struct rx_call *call, void *buf, size_t len)
{
	return rx_Read(call, (char *)buf, (int)len) == (int)len ? 0 : call_error(call);
}

int afsrx_write_words(struct rx_call *call, const uint32_t *words, size_t n)
{
	int code = 0;

	for (size_t i = 0; i < n && !code; i++) {
		uint32_t w = htonl(words[i]);

		code = afsrx_write(call, &w, sizeof(w));
	}
	return code;
}

int afsrx_read_words(struct rx_call *call, uint32_t *words, size_t n)
{
	int code = 0;

	for (size_t i = 0; i < n && !code; i++) {
		uint32_t w;

		code = afsrx_read(call, &w, sizeof(w));
		words[i] = code ? 0 : ntohl(w);
	}
	return code;
}

int afsrx_put(struct rx_call *call, unsigned char *buf, size_t io, uint64_t len, bool fill,
	      uint64_t *pos)
{
	while (len) {
		size_t n = len < io ? (size_t)len : io;
		int code;

		if (fill)
			afsrx_fill(buf, n, *pos);
		code = afsrx_write(call, buf, n);
		if (code)
			return code;
		*pos += n;
		len -= n;
	}
	return 0;
}

int afsrx_get(struct rx_call *call, unsigned char *buf, size_t io, uint64_t len, bool verify,
	      uint64_t *pos, uint64_t *bad)
{
	while (len) {
		size_t n = len < io ? (size_t)len : io;
		int code = afsrx_read(call, buf, n);

		if (code)
			return code;
		if (verify)
			*bad += afsrx_mismatch(buf, n, *pos);
		*pos += n;
		len -= n;
	}
	return 0;
}

void afsrx_print_counters(void)
{
	struct rx_statistics *s = rx_GetStatistics();

	printf("\"packets_sent\":%d,\"packets_resent\":%d,\"packets_received\":%d,"
	       "\"packets_duplicate\":%d,\"acks_sent\":%d,\"acks_received\":%d,\"busies\":%d",
	       s->dataPacketsSent, s->dataPacketsReSent, s->dataPacketsRead, s->dupPacketsRead,
	       s->ackPacketsSent, s->ackPacketsRead, s->nBusies);
	rx_FreeStatistics(&s);
}
