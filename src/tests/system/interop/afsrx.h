/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the two programs on OpenAFS's own Rx library: the words of the rxperf service, the test
 * pattern, option values, and complete reads and writes on an OpenAFS call.
 *
 * These programs do not use librxwire: they are the peers in the interoperation tests, and they
 * measure OpenAFS's library in the benchmark.
 */
#ifndef AFSRX_H
#define AFSRX_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>
#include <netinet/in.h>

#include <afs/param.h>
#include <afs/stds.h>
#include <rx/rx.h>
#include <rx/rx_null.h>

enum {
	AFSRX_PORT = 7009,
	AFSRX_SERVICE = 147,
	AFSRX_VERSION = 3,
	AFSRX_COOKIE = 0x4711,
	AFSRX_MAX_IO = 524288, /* largest read or write size that a server accepts */
	AFSRX_MAX_LIST = 4096, /* words of one FILE list */
};

enum afsrx_command {
	AFSRX_SEND = 0,
	AFSRX_RECV = 1,
	AFSRX_RPC = 3,
	AFSRX_FILE = 4,
};

/* Settings of the library; the same for both programs. Zero: the library's default. */
struct afsrx_setup {
	int window;	/* packets, both directions */
	int udp_buffer; /* bytes, for the socket's two buffers */
	int dead;	/* s without a packet from the peer after which a call fails */
	bool no_jumbo;
	bool hot_thread;
	const char *rxkad; /* "KEY:LEVEL": rxkad instead of no security */
};

/* CPU time and context switches of this process so far. */
struct afsrx_usage {
	double user_s;
	double sys_s;
	long switches;
};

/* Prints "program: text" and exits with status 2 (usage) or 1. */
void afsrx_usage_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void afsrx_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Parses a count with an optional K, M or G (powers of two) within [low, high], or dies. */
uint64_t afsrx_number(const char *option, const char *text, uint64_t low, uint64_t high);

/*
 * Applies one of --window, --udp-buffer, --dead, --no-jumbo, --hot-thread, --rxkad. Returns false
 * for any other option.
 */
#define AFSRX_SETUP_OPTIONS                                                                     \
	{"window", required_argument, NULL, 'W'}, {"udp-buffer", required_argument, NULL, 'u'}, \
		{"dead", required_argument, NULL, 'Z'}, {"no-jumbo", no_argument, NULL, 'N'},   \
		{"hot-thread", no_argument, NULL, 'H'},                                         \
	{                                                                                       \
		"rxkad", required_argument, NULL, 'X'                                           \
	}
#define AFSRX_SETUP_LETTERS "W:u:Z:NHX:"
bool afsrx_setup_option(struct afsrx_setup *setup, int opt, const char *arg);

/*
 * Before and after rx_Init(): the library accepts some settings only before it, others only after
 * it.
 */
void afsrx_setup_before(const struct afsrx_setup *setup);
void afsrx_setup_after(const struct afsrx_setup *setup);

/*
 * Security class 2 with tickets under the key in "KEY:LEVEL" (64 hex digits; 0, 1 or 2). Exits if
 * the argument is invalid.
 */
struct rx_securityClass *afsrx_rxkad_client(const char *text);
struct rx_securityClass *afsrx_rxkad_server(const char *text);

double afsrx_now(void);
void afsrx_usage_now(struct afsrx_usage *out);

/* Once, at the start of the program. */
void afsrx_pattern_init(void);
/*
 * The pattern: byte number pos of a stream of data. pos counts from the first byte after the words.
 */
void afsrx_fill(unsigned char *buf, size_t len, uint64_t pos);
/* Number of bytes that differ from the pattern. */
size_t afsrx_mismatch(const unsigned char *buf, size_t len, uint64_t pos);

/* Complete transfers; return 0, or the call's error (never 0 on failure). */
int afsrx_write(struct rx_call *call, const void *buf, size_t len);
int afsrx_read(struct rx_call *call, void *buf, size_t len);
int afsrx_write_words(struct rx_call *call, const uint32_t *words, size_t n);
int afsrx_read_words(struct rx_call *call, uint32_t *words, size_t n);

/*
 * Transfers one step of data in pieces of io bytes; buf has io bytes, *pos advances. fill and
 * verify: see afsrx_fill, afsrx_mismatch; *bad counts the bytes that differ.
 */
int afsrx_put(struct rx_call *call, unsigned char *buf, size_t io, uint64_t len, bool fill,
	      uint64_t *pos);
int afsrx_get(struct rx_call *call, unsigned char *buf, size_t io, uint64_t len, bool verify,
	      uint64_t *pos, uint64_t *bad);

/* The library's packet counters as members of a JSON object, without braces. */
void afsrx_print_counters(void);

#endif
