/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of tunables: defaults, conversion from and to text, and range checks; the constants. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/config.h>
#include <rxwire/error.h>

#include "common/near.h"
#include "common/sized.h"
#include "base/addr.h"
#include "base/cc.h"
#include "engine/core/config.h"
#include "engine/core/constants.h"
#include "engine/core/sys.h"

#define KIB	  1024ull
#define MIB	  (1024ull * KIB)
#define GIB	  (1024ull * MIB)
#define HOUR	  3600000ull

/* How a field is written as text. */
enum kind {
	KIND_UINT,   /* unsigned: low..high, and 0 if `zero` is set */
	KIND_SIZE,   /* size_t; the same with K, M, G */
	KIND_CHOICE, /* an enum: index into `words`, which reads "one|two|three" */
	KIND_CPUS,   /* char[]: a list such as "0-3,8", or "auto" */
	KIND_CLIENTS, /* debug_access and debug_clients together */
	KIND_LEVEL    /* enum rxw_log_level: a word of level_words */
};

/* The meaning of 0, if it is allowed although outside low..high. */
#define ZERO_NO	  NULL
#define ZERO_AUTO "auto"
#define ZERO_OFF  "off"

#define WORD_VALUE UINT_MAX
_Static_assert(WORD_VALUE == RXW_LISTENERS_SHARED, "the only word");

struct field {
	enum kind kind;
	size_t offset, size; /* of the member */
	uint64_t low, high;  /* numbers: range; enums: `high` is the highest value */
	const char *zero;    /* word for 0; NULL: 0 is not special */
	const char *words;   /* KIND_CHOICE; KIND_UINT: the word for WORD_VALUE, or NULL */
	uint64_t preset;     /* default of numbers and enums */
};

/*
 * Every tunable: name, argument, unit, scope, ordinary (1) or for experts (0); kind, member, low,
 * high, word for 0, words, default; help.
 */
#define TUNABLES(X)                                                                                \
	X("listeners", "N|auto|shared", "sockets", "endpoint", 1, UINT, listeners, 1, 64,          \
	  ZERO_AUTO, "shared", 0, "sockets and threads of the port; shared: see rxwire.conf(5)")   \
	X("mtu", "N", "bytes", "endpoint", 1, UINT, mtu, 548, 9000, ZERO_NO, NULL, 1444,           \
	  "UDP payload of a packet, 548 to 9000")                                                  \
	X("rcvbuf", "SIZE|auto", "bytes", "endpoint", 1, SIZE, rcvbuf, 4 * KIB, GIB, ZERO_AUTO,    \
	  NULL, 0, "receive buffer of each socket")                                                \
	X("dead-ms", "N", "ms", "call", 1, UINT, dead_ms, 1000, HOUR, ZERO_NO, NULL, 12000,        \
	  "time after which a silent peer is dead")                                                \
	X("idle-ms", "N|off", "ms", "call", 1, UINT, idle_ms, 1, 24 * HOUR, ZERO_OFF, NULL, 0,     \
	  "time after which a client call without data ends")                                      \
	X("hard-ms", "N|off", "ms", "call", 1, UINT, hard_ms, 1, 24 * HOUR, ZERO_OFF, NULL, 0,     \
	  "maximum duration of a client call")                                                     \
	X("memory", "SIZE", "bytes", "engine", 1, SIZE, memory, 2 * MIB, 1024 * GIB, ZERO_NO,      \
	  NULL, 192 * MIB, "all packet buffers of the engine")                                     \
	X("workers-max", "N", "threads", "endpoint", 1, UINT, workers_max, 1, 4096, ZERO_NO, NULL, \
	  64, "maximum number of workers")                                                         \
	X("queue", "N", "calls", "endpoint", 1, UINT, queue, 0, 1000000, ZERO_NO, NULL, 1024,      \
	  "maximum calls waiting for a worker; others get BUSY")                                   \
	X("debug-clients", "CIDR|local|any|off", "", "endpoint", 1, CLIENTS, debug_clients, 0, 0,  \
	  ZERO_NO, NULL, 0, "hosts that may query DEBUG statistics; default local")                \
	X("gso", "on|off|auto", "", "endpoint", 0, CHOICE, gso, 0, 2, ZERO_NO, "auto|on|off",      \
	  RXW_AUTO, "send several datagrams as one message")                                       \
	X("gro", "on|off|auto", "", "endpoint", 0, CHOICE, gro, 0, 2, ZERO_NO, "auto|on|off",      \
	  RXW_AUTO, "receive several datagrams as one message")                                    \
	X("io", "auto|mmsg|msg", "", "endpoint", 0, CHOICE, io, 0, 2, ZERO_NO, "auto|mmsg|msg",    \
	  RXW_IO_AUTO, "I/O back-end: several messages per system call, or one")                   \
	X("poll-us", "N", "microseconds", "endpoint", 0, UINT, poll_us, 0, 1000, ZERO_NO, NULL, 0, \
	  "polling time of a listener; uses a processor; 0 = none")                                \
	X("window", "N", "packets", "endpoint", 0, UINT, window, 1, 65535, ZERO_NO, NULL, 32768,   \
	  "maximum packets of a call in flight, 1 to 65535; above 255 if the peer allows it")      \
	X("sndbuf", "SIZE|auto", "bytes", "endpoint", 0, SIZE, sndbuf, 4 * KIB, GIB, ZERO_AUTO,    \
	  NULL, 0, "send buffer of each socket")                                                   \
	X("affinity", "CPUS|auto", "", "engine", 0, CPUS, affinity, 0, 0, ZERO_NO, NULL, 0,        \
	  "processors for the library's threads, 0-3,8; auto: one per listener; empty = all")      \
	X("congestion", "auto|reno|rate", "", "endpoint", 0, CHOICE, congestion, 0, 2, ZERO_NO,    \
	  "auto|reno|rate", RXW_CONGESTION_AUTO,                                                   \
	  "congestion control; auto = reno, or rate for wide windows")                             \
	X("path-mtu", "on|off|auto", "", "endpoint", 0, CHOICE, path_mtu, 0, 2, ZERO_NO,           \
	  "auto|on|off", RXW_AUTO, "probe the path for larger packets; auto = not on this host")   \
	X("jumbo", "on|off|auto", "", "endpoint", 0, CHOICE, jumbo, 0, 2, ZERO_NO, "auto|on|off",  \
	  RXW_AUTO, "tell peers that they may send jumbograms; auto = off")                        \
	X("ecn", "on|off|auto", "", "endpoint", 0, CHOICE, ecn, 0, 2, ZERO_NO, "auto|on|off",      \
	  RXW_AUTO, "see congestion by marks, with wide windows; auto = on")                       \
	X("server-idle-ms", "N|off", "ms", "call", 0, UINT, server_idle_ms, 1, 24 * HOUR,          \
	  ZERO_OFF, NULL, 60000, "time after which a server call without data ends")               \
	X("peer-memory", "SIZE", "bytes", "endpoint", 0, SIZE, peer_memory, 16 * KIB, 64 * GIB,    \
	  ZERO_NO, NULL, 64 * MIB, "received data queued by one peer")                             \
	X("connections-max", "N|off", "connections", "endpoint", 0, UINT, connections_max, 16,     \
	  16777216, ZERO_OFF, NULL, 262144,                                                        \
	  "maximum connections of validated addresses; idle ones are removed")                     \
	X("log-level", "error|warning|info|debug", "", "engine", 0, LEVEL, log_level,              \
	  RXW_LOG_ERROR, RXW_LOG_DEBUG, ZERO_NO, NULL, RXW_LOG_DEBUG,                              \
	  "least important lines of the log that programs get; default debug, all lines")

/* The controllers of `congestion`; none for auto. */
static const struct rxw_cc_ops *const controllers[] = {
	[RXW_CONGESTION_RENO] = &rxw_cc_reno,
	[RXW_CONGESTION_RATE] = &rxw_cc_rate,
};

#define MEMBER_SIZE(member) sizeof(((struct rxw_config *)0)->member)

static const struct rxw_option options[] = {
#define X(name, argument, unit, scope, ordinary, kind, member, low, high, zero, words, preset,     \
	  help)                                                                                    \
	{name, argument, unit, scope, ordinary, help},
	TUNABLES(X)
#undef X
};

static const struct field fields[] = {
#define X(name, argument, unit, scope, ordinary, kind, member, low, high, zero, words, preset,     \
	  help)                                                                                    \
	{KIND_##kind,                                                                      \
	 offsetof(struct rxw_config, member),                                              \
	 MEMBER_SIZE(member),                                                              \
	 low,                                                                              \
	 high,                                                                             \
	 zero,                                                                             \
	 words,                                                                            \
	 preset},
	TUNABLES(X)
#undef X
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

const struct rxw_option *rxw_config_options(size_t *count)
{
	if (count)
		*count = FIELDS;
	return options;
}

/* ---- members as numbers ---- */

static bool is_numeric_field(const struct field *f)
{
	return f->kind == KIND_UINT || f->kind == KIND_SIZE || f->kind == KIND_CHOICE ||
	       f->kind == KIND_LEVEL;
}

/* The words of log levels, and their numbers. */
static const char level_words[] = "error|warning|info|debug";
static const unsigned level_numbers[] = {RXW_LOG_ERROR, RXW_LOG_WARNING, RXW_LOG_INFO,
					 RXW_LOG_DEBUG};

/* Position of the number of a level, or -1. */
static int find_level(uint64_t number)
{
	for (int i = 0; i < 4; i++)
		if (level_numbers[i] == number)
			return i;
	return -1;
}

static uint64_t load_field(const struct rxw_config *c, const struct field *f)
{
	const char *at = (const char *)c + f->offset;
	unsigned u;
	size_t s;

	if (f->kind == KIND_SIZE) {
		memcpy(&s, at, sizeof(s));
		return s;
	}
	/* unsigned, or an enum: all of this library's enums have the same size */
	memcpy(&u, at, sizeof(u));
	return u;
}

static void store_field(struct rxw_config *c, const struct field *f, uint64_t value)
{
	char *at = (char *)c + f->offset;
	unsigned u = (unsigned)value;
	size_t s = (size_t)value;

	if (f->kind == KIND_SIZE)
		memcpy(at, &s, sizeof(s));
	else
		memcpy(at, &u, sizeof(u));
}

_Static_assert(sizeof(enum rxw_switch) == sizeof(unsigned), "load_field() and store_field()");
_Static_assert(sizeof(enum rxw_congestion) == sizeof(unsigned), "load_field() and store_field()");
_Static_assert(sizeof(enum rxw_log_level) == sizeof(unsigned), "load_field() and store_field()");
_Static_assert(sizeof(enum rxw_io_kind) == sizeof(unsigned), "load_field() and store_field()");

static uint64_t highest(const struct field *f)
{
	return f->kind == KIND_SIZE && f->high > SIZE_MAX / 2 ? SIZE_MAX / 2 : f->high;
}

/* Is it written as the word of a number? */
static bool field_has_word(const struct field *f, uint64_t value)
{
	return f->kind == KIND_UINT && f->words && value == WORD_VALUE;
}

static bool in_range(const struct field *f, uint64_t value)
{
	return (value >= f->low && value <= highest(f)) || (!value && f->zero) ||
	       field_has_word(f, value);
}

/* ---- text of values ---- */

static void put_message(char *message, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void put_message(char *message, size_t size, const char *format, ...)
{
	va_list args;

	if (!message || !size)
		return;
	va_start(args, format);
	vsnprintf(message, size, format, args);
	va_end(args);
}

/* Digits, with one of K, M, G if `suffix`; nothing else. */
static bool parse_number(const char *text, bool suffix, uint64_t *value)
{
	uint64_t v = 0;
	unsigned shift = 0;

	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9'; text++) {
		unsigned digit = (unsigned)(*text - '0');

		if (v > (UINT64_MAX - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	if (suffix && *text) {
		switch (*text++) {
		case 'k':
		case 'K':
			shift = 10;
			break;
		case 'm':
		case 'M':
			shift = 20;
			break;
		case 'g':
		case 'G':
			shift = 30;
			break;
		default:
			return false;
		}
	}
	if (*text || v > UINT64_MAX >> shift)
		return false;
	*value = v << shift;
	return true;
}

/* "", "auto", or a list of CPUs. */
__attribute__((cold)) static bool is_affinity(const char *text)
{
	int cpus[CPU_SETSIZE];

	return !*text || !strcmp(text, "auto") || rxw_cpu_list(text, cpus) >= 0;
}

/* Position of `value` in "one|two|three", or -1. */
static int find_word(const char *words, const char *value)
{
	size_t length = strlen(value);
	int i = 0;

	for (const char *w = words; w; i++) {
		const char *bar = strchr(w, '|');
		size_t n = bar ? (size_t)(bar - w) : strlen(w);

		if (n == length && !memcmp(w, value, n))
			return i;
		w = bar ? bar + 1 : NULL;
	}
	return -1;
}

/* The word at position `index`; its length. */
static size_t word_at(const char *words, uint64_t index, const char **word)
{
	for (; index; index--)
		words = strchr(words, '|') + 1;
	*word = words;
	return strcspn(words, "|");
}

/* Describes the valid numbers: "a whole number from 1 to 255 (packets)". */
static void describe_numbers(const struct field *f, const char *unit, char *text, size_t size)
{
	static const char suffix[] = " KMG";
	uint64_t v[2] = {f->low, highest(f)};
	const char *comma = f->zero ? ", or " : "", *zero = f->zero ? f->zero : "";
	char bound[2][24];

	for (int i = 0; i < 2; i++) {
		unsigned s = 0;

		for (; f->kind == KIND_SIZE && s < 3 && v[i] && !(v[i] & 1023); s++)
			v[i] >>= 10;
		snprintf(bound[i], sizeof(bound[i]), "%llu%.*s", (unsigned long long)v[i],
			 s ? 1 : 0, suffix + s);
	}
	if (f->kind == KIND_SIZE)
		snprintf(text, size, "a number of %s from %s to %s%s%s", unit, bound[0], bound[1],
			 comma, zero);
	else
		snprintf(text, size, "a whole number from %s to %s (%s)%s%s%s%s", bound[0],
			 bound[1], unit, comma, zero, f->words ? ", or " : "",
			 f->words ? f->words : "");
}

/* ---- the functions ---- */

/* In names "_" and "-" are equivalent. */
static const struct field *find_field(const char *name)
{
	for (size_t i = 0; i < FIELDS; i++) {
		const char *a = options[i].name, *b = name;

		while (*a && (*a == *b || (*a == '-' && *b == '_'))) {
			a++;
			b++;
		}
		if (!*a && !*b)
			return &fields[i];
	}
	return NULL;
}

const struct rxw_option *rxw_config_option(const char *name)
{
	const struct field *f = find_field(name);

	return f ? &options[f - fields] : NULL;
}

const struct rxw_cc_ops *rxw_config_controller(const struct rxw_config *config, bool wide)
{
	if (config->congestion != RXW_CONGESTION_AUTO)
		return controllers[config->congestion];
	return wide ? &rxw_cc_rate : &rxw_cc_reno;
}

__attribute__((cold)) void rxw_config_init(struct rxw_config *config, size_t size)
{
	struct rxw_config c;

	if (!config || size < sizeof(config->size))
		return;
	memset(&c, 0, sizeof(c));
	for (size_t i = 0; i < FIELDS; i++)
		if (is_numeric_field(&fields[i]))
			store_field(&c, &fields[i], fields[i].preset);
	c.size = size;
	/* Fields that this library does not know stay zero, which means "not set". */
	memset(config, 0, size);
	memcpy(config, &c, size < sizeof(c) ? size : sizeof(c));
}

/* Does the structure that the caller was compiled with have this member? */
static bool has_member(const struct rxw_config *config, const struct field *f)
{
	return config->size >= f->offset + f->size;
}

static int set_text_field(struct rxw_config *config, const struct field *f, const char *value)
{
	size_t length = strlen(value);

	if (length >= f->size)
		return -RXW_EVALUE;
	memset((char *)config + f->offset, 0, f->size);
	memcpy((char *)config + f->offset, value, length);
	return 0;
}

static int set_clients(struct rxw_config *config, const struct field *f, const char *value)
{
	int word = find_word("local|off|any", value); /* in the order of enum rxw_debug_access */
	struct rxw_cidr net;

	if (word < 0 && (!rxw_cidr_parse(&net, value) || strlen(value) >= f->size))
		return -RXW_EVALUE;
	set_text_field(config, f, word < 0 ? value : "");
	config->debug_access = word < 0 ? RXW_DEBUG_NET : (enum rxw_debug_access)word;
	return 0;
}

static int set_numeric_field(struct rxw_config *config, const struct field *f, const char *value)
{
	uint64_t v;

	if (f->zero && !strcmp(value, f->zero))
		v = 0;
	else if (f->words && !strcmp(value, f->words))
		v = WORD_VALUE;
	else if (!parse_number(value, f->kind == KIND_SIZE, &v) || field_has_word(f, v) ||
		 !in_range(f, v))
		return -RXW_EVALUE;
	store_field(config, f, v);
	return 0;
}

static int set_field(struct rxw_config *config, const struct field *f, const char *value)
{
	int word;

	switch (f->kind) {
	case KIND_UINT:
	case KIND_SIZE:
		return set_numeric_field(config, f, value);
	case KIND_CHOICE:
		word = find_word(f->words, value);
		if (word < 0)
			return -RXW_EVALUE;
		store_field(config, f, (uint64_t)word);
		return 0;
	case KIND_LEVEL:
		word = find_word(level_words, value);
		if (word < 0)
			return -RXW_EVALUE;
		store_field(config, f, level_numbers[word]);
		return 0;
	case KIND_CPUS:
		return is_affinity(value) ? set_text_field(config, f, value) : -RXW_EVALUE;
	case KIND_CLIENTS:
		return set_clients(config, f, value);
	}
	return -RXW_EVALUE;
}

static void explain_field(const struct field *f, const char *value, char *message, size_t size)
{
	const struct rxw_option *o = &options[f - fields];
	char allowed[160] = "";

	switch (f->kind) {
	case KIND_UINT:
	case KIND_SIZE:
		describe_numbers(f, o->unit, allowed, sizeof(allowed));
		break;
	case KIND_CHOICE:
	case KIND_LEVEL:
		snprintf(allowed, sizeof(allowed), "one of %s", o->argument);
		break;
	case KIND_CPUS:
		snprintf(allowed, sizeof(allowed), "auto or a list of processors such as 0-3,8");
		break;
	case KIND_CLIENTS:
		snprintf(allowed, sizeof(allowed),
			 "local, any, off or a network such as 10.0.0.0/8");
		break;
	}
	put_message(message, size, "%s: \"%.64s\" is not %s", o->name, value, allowed);
}

/* The option whose name is misspelt, or NULL. */
static const char *nearest_option(const char *name)
{
	const char *found = NULL;
	unsigned least = 3;

	for (size_t i = 0; strlen(name) >= 3 && i < FIELDS; i++) {
		unsigned d = near_edits(name, options[i].name);

		if (d < least) {
			least = d;
			found = options[i].name;
		}
	}
	return found;
}

__attribute__((cold))
int rxw_config_set(struct rxw_config *config, const char *name, const char *value, char *message,
		   size_t message_size)
{
	const struct field *f;
	int rc;

	if (message && message_size)
		*message = 0;
	if (!config || !name || !value) {
		put_message(message, message_size, "no configuration, name or value was given");
		return -RXW_EINVAL;
	}
	f = find_field(name);
	if (!f) {
		const char *near = nearest_option(name);

		put_message(message, message_size, "%.64s: there is no option of this name%s%s%s",
			    name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
		return -RXW_ENAME;
	}
	if (!has_member(config, f)) {
		put_message(message, message_size,
			    "%s: this program was built for an older library without this option",
			    name);
		return -RXW_ENAME;
	}
	rc = set_field(config, f, value);
	if (rc < 0)
		explain_field(f, value, message, message_size);
	return rc;
}

__attribute__((cold)) int rxw_config_get(const struct rxw_config *config, const char *name,
					 char *text, size_t text_size)
{
	const struct field *f = config && name ? find_field(name) : NULL;
	const char *word = NULL;
	size_t length = 0;
	char digits[24];

	if (!config || !name || !text)
		return -RXW_EINVAL;
	if (!f || !has_member(config, f))
		return -RXW_ENAME;
	if (f->kind == KIND_CLIENTS && config->debug_access != RXW_DEBUG_NET) {
		if ((unsigned)config->debug_access > RXW_DEBUG_ANY)
			return -RXW_EINVAL;
		length = word_at("local|off|any", config->debug_access, &word);
	} else if (f->kind == KIND_CHOICE) {
		if (load_field(config, f) > f->high)
			return -RXW_EINVAL;
		length = word_at(f->words, load_field(config, f), &word);
	} else if (f->kind == KIND_LEVEL) {
		int level = find_level(load_field(config, f));

		if (level < 0)
			return -RXW_EINVAL;
		length = word_at(level_words, (uint64_t)level, &word);
	} else if (is_numeric_field(f)) {
		snprintf(digits, sizeof(digits), "%llu", (unsigned long long)load_field(config, f));
		word = f->zero && !load_field(config, f) ? f->zero : digits;
		word = field_has_word(f, load_field(config, f)) ? f->words : word;
		length = strlen(word);
	} else {
		word = (const char *)config + f->offset;
		length = strnlen(word, f->size);
	}
	if (length >= text_size)
		return -RXW_EINVAL;
	memcpy(text, word, length);
	text[length] = 0;
	return (int)length;
}

/* Fields set directly must be in the range that the parser enforces. */
static bool field_good(const struct rxw_config *c, const struct field *f)
{
	const char *text = (const char *)c + f->offset;
	struct rxw_cidr net;

	if (f->kind == KIND_LEVEL)
		return find_level(load_field(c, f)) >= 0;
	if (is_numeric_field(f))
		return in_range(f, load_field(c, f));
	if (strnlen(text, f->size) == f->size)
		return false;
	if (f->kind == KIND_CPUS)
		return is_affinity(text);
	return (unsigned)c->debug_access <= RXW_DEBUG_ANY ||
	       (c->debug_access == RXW_DEBUG_NET && rxw_cidr_parse(&net, text));
}

__attribute__((cold)) int rxw_config_adopt(struct rxw_config *full, const struct rxw_config *from)
{
	rxw_config_init(full, sizeof(*full));
	if (!sized_read(full, sizeof(*full), from))
		return -RXW_EINVAL;
	for (size_t i = 0; i < FIELDS; i++) {
		const struct field *f = &fields[i];

		/*
		 * 0 means the default of memory sizes; a member that `size` cuts in two is missing
		 */
		if (f->kind == KIND_SIZE && !load_field(full, f))
			store_field(full, f, f->preset);
		if (f->offset + f->size > from->size && f->offset < from->size) {
			memset((char *)full + f->offset, 0, f->size);
			if (is_numeric_field(f))
				store_field(full, f, f->preset);
		}
		if (!field_good(full, f))
			return -RXW_EINVAL;
	}
	return 0;
}

const struct rxw_constants rxw_constants = {
	.batch = 32,
	.spin_us = 100,
	.coalesce_us = 30,
	.refusal_us = 1000,
	.writer_receives = true,
	.call_memory = 2u << 20,
	/*
	 * The queued data of a call stay within two windows of 255 packets and 4 KiB: one window
	 * is in flight, and one is ready when an ACK opens the next.
	 */
	.sendq_packets = 420,
	.abort_rate = 50,
	.answer_rate = 50,
	.unvalidated_max = 8192,
	.reserved_peers = 2,
	.queue_burst_ms = 100,
	.waiters_max = 256,
	.inline_us = 500,
};
