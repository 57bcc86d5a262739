/* SPDX-License-Identifier: BSD-2-Clause */
/* Prometheus text: unique names, values after calls, arguments. */
#include <arpa/inet.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness.h"
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
	enum { CALLS = 50 };
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
	ck_assert(of_server(text, "rxwire_call_duration_seconds_count", "role=\"server\"") == CALLS);
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
}
END_TEST

TEST_MAIN_WITHIN(60, "metrics", figures_follow_calls, duration_of_inline_calls,
	  decimal_points_in_any_locale, families_are_contiguous, arguments)
