/* SPDX-License-Identifier: BSD-2-Clause */
/* Prometheus text: unique names, values after calls; the list of calls; arguments. */
#include <arpa/inet.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rxwire/observe.h>

#include "tests/rx/api/harness.h"
#include "tests/main.h"

static struct h_bed bed;

static char *text_of(rxw_endpoint *const *endpoints, size_t count)
{
	char *text = NULL;
	int n = rxw_metrics_text(endpoints, count, &text);

	ck_assert_int_gt(n, 0);
	ck_assert_uint_eq((size_t)n, strlen(text));
	ck_assert_int_eq(text[n - 1], '\n');
	return text;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The value of the sample with this name and labels. Fails if it is absent. */
static double sample(const char *text, const char *series)
{
	const char *at = text;
	size_t n = strlen(series);

	while ((at = strstr(at, series))) {
		if ((at == text || at[-1] == '\n') && at[n] == ' ')
			return strtod(at + n, NULL);
		at += n;
	}
	ck_abort_msg("no sample %s in:\n%s", series, text);
	return 0;
}

static double of_server(const char *text, const char *name, const char *labels)
{
	const struct sockaddr_in *sin = (const struct sockaddr_in *)&bed.address;
	char series[256];

	snprintf(series, sizeof(series), "%s{endpoint=\"127.0.0.1:%u\"%s%s}", name,
		 ntohs(sin->sin_port), *labels ? "," : "", labels);
	return sample(text, series);
}

static bool no_calls_left(void *arg)
{
	return !counter_of(arg, "calls_active");
}

START_TEST(figures_follow_calls)
{
	rxw_endpoint *both[2];
	rxw_connection *connection;
	struct counters s;
	char *text;

	h_open(&bed, NULL);
	both[0] = bed.server;
	both[1] = bed.client;
	connection = h_connect(&bed, H_SERVICE);
	for (int i = 0; i < 3; i++)
		h_good_call(&bed, connection, &(struct h_ask){.op = H_BOTH, .bytes = 100000});
	h_wait_for(no_calls_left, bed.server, "the last reply is acknowledged");
	s = counters_of(bed.server);
	text = text_of(both, 2);
	ck_assert(of_server(text, "rxwire_calls_started_total", "") == 3);
	ck_assert(of_server(text, "rxwire_calls_ended_total", "") == 3);
	ck_assert(of_server(text, "rxwire_calls_active", "") == 0);
	ck_assert(of_server(text, "rxwire_connections_server", "") == 1);
	ck_assert(of_server(text, "rxwire_handlers_total", "on=\"worker\"") == 3);
	ck_assert(of_server(text, "rxwire_packets_total", "direction=\"sent\",type=\"data\"") ==
		  (double)counter_in(&s, "packets.sent.data"));
	ck_assert(of_server(text, "rxwire_bytes_total", "direction=\"received\"") >= 300000);
	ck_assert(of_server(text, "rxwire_drops_total", "cause=\"seq-zero\"") == 0);
	ck_assert(of_server(text, "rxwire_memory_limit_bytes", "") > 0);
	ck_assert(of_server(text, "rxwire_call_duration_seconds_count", "role=\"server\"") == 3);
	ck_assert(of_server(text, "rxwire_call_duration_seconds_count", "role=\"client\"") == 0);
	ck_assert(of_server(text, "rxwire_call_duration_seconds_sum", "role=\"server\"") > 0);
	ck_assert(of_server(text, "rxwire_call_duration_seconds_bucket",
			    "role=\"server\",le=\"+Inf\"") == 3);
	rxw_connection_release(connection);
	free(text);
	h_close(&bed);
}
END_TEST

/*
 * The receiving thread's cached time does not advance during an inline handler. A call's duration
 * is nevertheless above zero, and below the time of all calls.
 */
START_TEST(duration_of_inline_calls)
{
	enum {
		CALLS = 50
	};
	rxw_connection *connection;
	double sum, before;
	char *text;

	h_open(&bed, NULL);
	connection = h_connect(&bed, H_INLINE);
	before = seconds();
	for (int i = 0; i < CALLS; i++)
		h_good_call(&bed, connection, &(struct h_ask){.op = H_PING});
	text = text_of(&bed.server, 1);
	sum = of_server(text, "rxwire_call_duration_seconds_sum", "role=\"server\"");
	ck_assert(sum > 0);
	ck_assert(sum < seconds() - before);
	ck_assert(of_server(text, "rxwire_call_duration_seconds_count", "role=\"server\"") ==
		  CALLS);
	rxw_connection_release(connection);
	free(text);
	h_close(&bed);
}
END_TEST

/*
 * In a locale with decimal commas the text is the same. Without such a locale, check-layers.sh
 * covers this.
 */
START_TEST(decimal_points_in_any_locale)
{
	static const char *const names[] = {"tr_TR.UTF-8", "de_DE.UTF-8", "fr_FR.UTF-8"};
	rxw_connection *connection;
	const char *here = NULL, *at;
	char *text;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !here; i++)
		here = setlocale(LC_ALL, names[i]);
	if (!here)
		puts("left out: no locale that writes a decimal comma is installed here");
	h_open(&bed, NULL);
	connection = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, connection, &(struct h_ask){.op = H_BOTH, .bytes = 1000});
	text = text_of(&bed.server, 1);
	setlocale(LC_ALL, "C");
	for (at = text; *at; at = strchr(at, '\n') + 1) {
		size_t line = strcspn(at, "\n");
		const char *value = memchr(at, '}', line);

		if (*at != '#' && value)
			ck_assert_uint_eq(strcspn(value, ",\n"), line - (size_t)(value - at));
	}
	/* The bounds of the histogram are labels. */
	for (at = text; (at = strstr(at, ",le=\"")); at++)
		ck_assert(strspn(at + 5, "0123456789.+Inf") == strcspn(at + 5, "\""));
	ck_assert(of_server(text, "rxwire_call_duration_seconds_sum", "role=\"server\"") > 0);
	rxw_connection_release(connection);
	free(text);
	h_close(&bed);
}
END_TEST

/* Every family has one HELP and one TYPE, followed by all of its samples. */
START_TEST(families_are_contiguous)
{
	char *text, *line, *next, family[128] = "", help[128] = "";
	unsigned families = 0;
	rxw_endpoint *both[2];

	h_open(&bed, NULL);
	both[0] = bed.server;
	both[1] = bed.client;
	text = text_of(both, 2);
	for (line = text; *line; line = next) {
		next = strchr(line, '\n') + 1;
		if (!strncmp(line, "# HELP ", 7)) {
			snprintf(help, sizeof(help), "# HELP %.*s ", (int)strcspn(line + 7, " "),
				 line + 7);
			ck_assert_ptr_null(strstr(next, help));
		} else if (!strncmp(line, "# TYPE ", 7)) {
			snprintf(family, sizeof(family), "%.*s", (int)strcspn(line + 7, " "),
				 line + 7);
			ck_assert_int_eq(strncmp(help + 7, family, strlen(family)), 0);
			families++;
		} else {
			ck_assert_int_eq(strncmp(line, family, strlen(family)), 0);
			ck_assert_ptr_nonnull(strchr("{ _", line[strlen(family)]));
		}
	}
	ck_assert_uint_ge(families, 40);
	free(text);
	h_close(&bed);
}
END_TEST

/* A number of the call that begins at `call`. */
static double member(const char *call, const char *name)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(call, key);
	ck_assert_msg(at != NULL, "no %s in %s", name, call);
	return strtod(at + strlen(key), NULL);
}

static char *calls_of(rxw_endpoint *endpoint, size_t most)
{
	char *text = NULL;
	int n = rxw_metrics_calls(&endpoint, 1, most, &text);

	ck_assert_int_gt(n, 0);
	ck_assert_uint_eq((size_t)n, strlen(text));
	return text;
}

static unsigned count_of(const char *text, const char *part)
{
	unsigned n = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		n++;
	return n;
}

enum {
	LISTED = 5
};

/* One call has written all that it may to a handler that does not read; the others are small. */
static bool window_full(void *arg)
{
	char *text = calls_of(arg, LISTED);
	bool full = strstr(text, "\"direction\":\"sending\"") && member(text, "queued") > 0 &&
		    member(text, "peer_window") > 0 && member(text, "bytes_sent") > 20000 &&
		    member(text, "rtt_s") > 0;

	free(text);
	return full;
}

/* The packets that the client counts as sent have arrived at the server. */
static bool window_received(void *arg)
{
	char *text = calls_of(arg, LISTED);
	bool received = member(text, "bytes_received") > 20000;

	free(text);
	return received;
}

START_TEST(calls_are_listed)
{
	const struct sockaddr_in *sin = (const struct sockaddr_in *)&bed.address;
	struct rxw_call_options big = {
		.size = sizeof(big), .flags = RXW_CALL_NONBLOCK, .deadline_ms = 0};
	rxw_connection *connection[LISTED];
	rxw_call *call[LISTED];
	uint8_t bytes[65536] = {0};
	struct h_ask ask = {.op = H_WAIT};
	char peer[64], *text;
	double senders = 0;

	h_open(&bed, &(struct h_options){.server = "listeners=2", .both = "congestion=reno"});
	for (int i = 0; i < LISTED; i++) {
		connection[i] = h_connect(&bed, H_SERVICE);
		if (i) {
			call[i] = h_begin(connection[i], &ask);
			ck_assert_int_eq(rxw_call_flush(call[i]), 0);
			continue;
		}
		ck_assert_int_eq(rxw_call_begin(connection[i], &big, &call[i]), 0);
		h_write_ask(call[i], &ask);
		while (rxw_call_write(call[i], bytes, sizeof(bytes)) > 0)
			;
	}
	h_gate_arrived(&bed, LISTED);
	h_wait_for(window_full, bed.client, "the large call is listed first, with its figures");
	text = calls_of(bed.client, LISTED);
	snprintf(peer, sizeof(peer), "\"peer\":\"127.0.0.1:%u\"", ntohs(sin->sin_port));
	ck_assert_uint_eq(count_of(text, peer), LISTED);
	ck_assert_uint_eq(count_of(text, "\"role\":\"client\""), LISTED);
	ck_assert_uint_eq(count_of(text, "\"controller\":\"reno\""), LISTED);
	ck_assert(member(text, "number") == 1);
	ck_assert(member(text, "service") == H_SERVICE);
	ck_assert(member(text, "cwnd") > 0);
	ck_assert(member(text, "rtt_s") >= member(text, "rtt_min_s"));
	ck_assert(member(text, "age_s") > 0);
	ck_assert(member(text, "left_out") == 0);
	free(text);
	/* With less room, the call of the highest rate, and the others are counted. */
	text = calls_of(bed.client, 1);
	ck_assert_uint_eq(count_of(text, peer), 1);
	ck_assert(member(text, "bytes_sent") > 20000);
	ck_assert(member(text, "left_out") == LISTED - 1);
	free(text);
	text = calls_of(bed.client, 0);
	ck_assert_uint_eq(count_of(text, peer), 0);
	ck_assert(member(text, "left_out") == LISTED);
	free(text);
	h_wait_for(window_received, bed.server, "the server lists the large call first");
	text = calls_of(bed.server, 100);
	ck_assert_uint_eq(count_of(text, "\"role\":\"server\""), LISTED);
	ck_assert_uint_eq(count_of(text, "\"direction\":\"receiving\""), LISTED);
	ck_assert(member(text, "receive_window") > 0);
	free(text);
	/* The metrics have sums of the same, without a label for each call. */
	text = text_of(&bed.client, 1);
	for (const char *at = text; (at = strstr(at, "\nrxwire_senders{")); at++) {
		ck_assert_ptr_nonnull(strstr(at, "controller=\""));
		if (strstr(at, "controller=\"reno\"") == strstr(at, "controller=\""))
			senders += strtod(strstr(at, "} ") + 2, NULL);
	}
	ck_assert(senders >= 1);
	ck_assert_ptr_null(strstr(text, "rxwire_senders_cwnd_packets 0\n"));
	free(text);
	for (int i = 0; i < LISTED; i++)
		rxw_call_abort(call[i], 77);
	h_gate_open(&bed);
	for (int i = 0; i < LISTED; i++) {
		rxw_call_end(call[i], 0, NULL);
		rxw_connection_release(connection[i]);
	}
	text = calls_of(bed.client, LISTED);
	ck_assert_str_eq(text, "{\"calls\":[],\"left_out\":0}\n");
	free(text);
	h_close(&bed);
}
END_TEST

START_TEST(arguments)
{
	rxw_endpoint *none = NULL;
	char *text;

	ck_assert_int_eq(rxw_metrics_text(NULL, 1, &text), -RXW_EINVAL);
	ck_assert_int_eq(rxw_metrics_text(&none, 1, &text), -RXW_EINVAL);
	ck_assert_ptr_null(text);
	ck_assert_int_eq(rxw_metrics_text(NULL, 0, NULL), -RXW_EINVAL);
	text = text_of(NULL, 0);
	ck_assert(strstr(text, "rxwire_build_info{version=\"") != NULL);
	ck_assert_ptr_null(strstr(text, "endpoint="));
	free(text);
	ck_assert_int_eq(rxw_metrics_calls(NULL, 1, 1, &text), -RXW_EINVAL);
	ck_assert_int_eq(rxw_metrics_calls(&none, 1, 1, &text), -RXW_EINVAL);
	ck_assert_ptr_null(text);
	ck_assert_int_eq(rxw_metrics_calls(NULL, 0, 1, NULL), -RXW_EINVAL);
	ck_assert_int_gt(rxw_metrics_calls(NULL, 0, 1, &text), 0);
	ck_assert_str_eq(text, "{\"calls\":[],\"left_out\":0}\n");
	free(text);
}
END_TEST

TEST_MAIN_WITHIN(60, "metrics", figures_follow_calls, duration_of_inline_calls,
		 decimal_points_in_any_locale, families_are_contiguous, calls_are_listed, arguments)
