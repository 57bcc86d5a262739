/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside rxwstat: the state of an endpoint, and the functions that collect and show it. */
#ifndef TOOLS_STAT_H
#define TOOLS_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/debugfmt.h"
#include "program/address.h"

#define STAT_WORDS 71

/* One sample of a metrics text: NAME{LABELS} VALUE. */
struct stat_sample {
	char *name, *labels; /* labels without braces */
	double value;
};

struct stat_samples {
	struct stat_sample *at;
	size_t count;
};

/* The state of an endpoint at one time. */
struct stat_view {
	char name[TOOLS_ADDRESS_TEXT];
	struct tools_address address; /* where DEBUG packets are sent */
	uint64_t at;		      /* ns */
	/* from DEBUG and VERSION packets; 0 or empty if it did not answer */
	bool answered, have_rx;
	char version[66];
	char letter; /* version of the layouts that it supports */
	struct rxw_debug_stats basic;
	struct rxw_debug_rxstats rx;
	struct rxw_debug_conn *conns;
	struct rxw_debug_peer *peers;
	size_t conn_count, peer_count;
	bool more; /* there are more connections or peers than requested */
	/* from the metrics socket of its program */
	struct stat_samples samples; /* with this endpoint's label; may be empty */
	json_t *calls;		     /* in progress, the highest rate first; or NULL */
	uint64_t calls_left_out; /* further calls of its program */
};

/* collect.c: whether anything answers at an address, after two tries at most. */
bool stat_answers(const struct tools_address *address, uint64_t timeout_ms);

/* The peers that have moved the most bytes since `before` come first; NULL: at all. */
void stat_order_peers(struct stat_view *view, const struct stat_view *before);

/*
 * scrape.c: read "/metrics" or "/calls" from a metrics socket, to be freed; NULL with a line in
 * message.
 */
char *stat_fetch(const char *path, const char *page, uint64_t timeout_ms, char *message,
		 size_t size);
/* Parse it. The samples point into the text, which is modified and must live as long. */
bool stat_parse(char *text, struct stat_samples *samples);
/* Value of a label, copied; false if there is none. */
bool stat_label(const char *labels, const char *name, char *value, size_t size);
/* Sum of the samples of that name with these labels (all of them if ""), 0 if there are none. */
double stat_sum(const struct stat_samples *samples, const char *name, const char *labels);

/* Calls in progress. Bytes per second of a call: since `before`, or with NULL or a call not in it, since its begin. */
double stat_call_rate(const json_t *call, const struct stat_view *before);
/* The calls of the endpoint in the answer of its program; none if that is malformed. */
void stat_take_calls(struct stat_view *view, const char *text);
/* A line of the table of calls; with NULL, its head. */
void stat_call_line(const json_t *call, double rate, char *line, size_t size);

/* show.c */
extern const char *const stat_states[6], *const stat_modes[5];
/* Names of the words of rx_statistics; NULL for spare words and parts of others. */
extern const char *const stat_words[STAT_WORDS];
char *stat_host_text(const uint8_t host[4], uint16_t port, char *text, size_t size);
json_t *stat_json(const struct stat_view *view);
void stat_print(const struct stat_view *view);

/* The endpoints to query, and how. */
struct stat_source {
	const struct tools_address *addresses;
	size_t address_count;
	const char *const *sockets; /* metrics sockets of programs on this host */
	size_t socket_count;
	uint64_t timeout_ms; /* of the first attempt of a query; doubled three times */
	uint64_t most;	     /* connections and peers of an endpoint */
	bool all;	     /* connections without a call, too */
};

/* collect.c: query everything; an array of *count views, or NULL with a line in message. */
struct stat_view *stat_collect(const struct stat_source *source, size_t *count, char *message,
			       size_t size);
void stat_forget(struct stat_view *views, size_t count);

/* live.c: show until q is pressed, or `rounds` times (0: no limit). Exit status. */
int stat_live(const struct stat_source *source, uint64_t interval_ms, uint64_t rounds);

#endif
