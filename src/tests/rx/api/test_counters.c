/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of counters: complete, with unique names, the same in the iterator and in the metrics.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/observe/counters.h"
#include <rxwire/observe.h>

#include "harness.h"
#include "tests/main.h"

static struct h_bed bed;

/* Each word of the structure with the sums belongs to one row of the table. */
START_TEST(every_counter_once)
{
	unsigned seen[RXW_COUNTERS] = {0};

	ck_assert_uint_eq(sizeof(struct rxw_sums) % sizeof(uint64_t), 0);
	for (size_t i = 0; i < rxw_family_count; i++)
		for (size_t k = 0; k < rxw_family_size(&rxw_families[i]); k++) {
			size_t word = rxw_families[i].first + k;

			ck_assert_msg(word < RXW_COUNTERS, "%s is too long", rxw_families[i].name);
			seen[word]++;
		}
	for (size_t i = 0; i < RXW_COUNTERS; i++)
		ck_assert_msg(seen[i] == 1, "word %zu of struct rxw_sums has %u names", i, seen[i]);
}
END_TEST

static unsigned count_dots(const char *name)
{
	unsigned n = 0;

	for (; *name; name++)
		n += *name == '.';
	return n;
}

/* The iterator has as many counters. Names are unique, in lower case, and found. */
START_TEST(names)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_.-";
	const struct rxw_counter *c;
	size_t n = 0;

	for (; (c = rxw_counter_at(n)); n++) {
		ck_assert_uint_gt(strlen(c->name), 0);
		ck_assert_uint_eq(strspn(c->name, letters), strlen(c->name));
		ck_assert_int_eq(c->help[strlen(c->help) - 1], '.');
		ck_assert(c->kind == RXW_COUNTER_TOTAL || c->kind == RXW_COUNTER_CURRENT);
		ck_assert_uint_eq(counters_place(c->name), n);
		ck_assert_uint_eq(count_dots(c->name), !!c->label[0] + !!c->label[1]);
	}
	ck_assert_uint_eq(n, RXW_COUNTERS);
}
END_TEST

/* A word of the sums has the place of its name. */
START_TEST(places)
{
	struct rxw_sums sums = {.calls_started = 1, .kernel_drops = 4, .pinned_bytes = 7};
	struct counters c;

	sums.packets[RXW_SENT][rxw_packet_class[1]] = 2;
	sums.packets[RXW_RECEIVED][rxw_packet_class[13]] = 3;
	sums.drops[RXW_DROP_VERIFY] = 5;
	sums.lock_contended[RXW_LOCK_SEND_QUEUE] = 6;
	sums.datagrams[RXW_RECEIVED] = 8;
	rxw_sums_list(&sums, c.value, COUNTERS_ROOM);
	ck_assert_uint_eq(counter_in(&c, "calls_started"), 1);
	ck_assert_uint_eq(counter_in(&c, "packets.sent.data"), 2);
	ck_assert_uint_eq(counter_in(&c, "packets.received.version"), 3);
	ck_assert_uint_eq(counter_in(&c, "kernel_drops"), 4);
	ck_assert_uint_eq(counter_in(&c, "drops.verify"), 5);
	ck_assert_uint_eq(counter_in(&c, "lock_contended.send-queue"), 6);
	ck_assert_uint_eq(counter_in(&c, "pinned_bytes"), 7);
	ck_assert_uint_eq(counter_in(&c, "datagrams.received"), 8);
	ck_assert_uint_eq(counters_sum(&c, ""), 36);
}
END_TEST

static bool idle(void *arg)
{
	(void)arg;
	return !counter_of(bed.server, "calls_active") && !counter_of(bed.client, "calls_active");
}

/* The value of a series in the metrics: its labels are the parts of the counter's name. */
static uint64_t in_metrics(const char *text, const struct rxw_counter *c)
{
	char copy[64], start[96], labels[2][48], *part, *rest = copy;
	size_t n;

	snprintf(copy, sizeof(copy), "%s", c->name);
	part = strsep(&rest, ".");
	snprintf(start, sizeof(start), "rxwire_%s%s{endpoint=", part,
		 c->kind == RXW_COUNTER_TOTAL ? "_total" : "");
	for (n = 0; n < 2 && (part = strsep(&rest, ".")); n++)
		snprintf(labels[n], sizeof(labels[n]), "=\"%s\"%s", part, rest ? "," : "}");
	while ((text = strstr(text, start))) {
		const char *end = strchr(text, '}') + 1;
		bool same = text[-1] == '\n';

		for (size_t i = 0; i < n && same; i++) {
			const char *at = strstr(text, labels[i]);

			same = at && at < end;
		}
		if (same)
			return strtoull(end, NULL, 10);
		text = end;
	}
	ck_abort_msg("%s is not in the metrics", c->name);
	return 0;
}

/* The metrics of an endpoint at rest have the values of the iterator, and each single one. */
START_TEST(the_same_in_metrics)
{
	rxw_connection *connection;
	const struct rxw_counter *c;
	struct counters before, after;
	char *text = NULL;
	size_t same = 0;

	h_open(&bed, NULL);
	connection = h_connect(&bed, H_SERVICE);
	for (int i = 0; i < 3; i++)
		h_good_call(&bed, connection, &(struct h_ask){.op = H_BOTH, .bytes = 50000});
	h_wait_for(idle, NULL, "the last reply is acknowledged");
	before = counters_of(bed.server);
	ck_assert_int_gt(rxw_metrics_text(&bed.server, 1, &text), 0);
	for (size_t i = 0; (c = rxw_counter_at(i)); i++) {
		uint64_t value = in_metrics(text, c), alone = counter_of(bed.server, c->name);

		after = counters_of(bed.server);
		/* Threads that become idle may still count. */
		if (before.value[i] == after.value[i]) {
			ck_assert_msg(value == after.value[i] && alone == value, "%s", c->name);
			same++;
		}
	}
	ck_assert_uint_ge(same, RXW_COUNTERS / 2);
	ck_assert_uint_eq(counter_in(&before, "calls_started"), 3);
	rxw_connection_release(connection);
	free(text);
	h_close(&bed);
}
END_TEST

/* Does the manual page have this word, with the minus signs of roff? */
static bool has_word(const char *page, const char *word)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-\\";
	char want[64];
	size_t n = 0;

	for (; *word; word++) {
		if (*word == '-')
			want[n++] = '\\';
		want[n++] = *word;
	}
	want[n] = 0;
	while ((page = strstr(page, want))) {
		if (!strchr(letters, page[-1]) && !strchr(letters, page[n]))
			return true;
		page += n;
	}
	return false;
}

/* rxw_stats(3) has each name, and each value of a label. */
START_TEST(manual)
{
	static char page[65536];
	FILE *file = fopen(RXW_TEST_SRCDIR "/../../doc/man/rxw_stats.3", "re");
	size_t n;

	ck_assert_ptr_nonnull(file);
	n = fread(page, 1, sizeof(page) - 1, file);
	fclose(file);
	ck_assert_uint_lt(n, sizeof(page) - 1);
	for (const struct rxw_family *f = rxw_families; f < rxw_families + rxw_family_count; f++) {
		ck_assert_msg(has_word(page, f->name), "rxw_stats(3) lacks %s", f->name);
		for (unsigned l = 0; l < 2; l++)
			for (unsigned i = 0; i < f->label[l].count; i++)
				ck_assert_msg(has_word(page, f->label[l].value[i]),
					      "rxw_stats(3) lacks %s of %s", f->label[l].value[i],
					      f->name);
	}
}
END_TEST

TEST_MAIN_WITHIN(60, "counters", every_counter_once, names, places, the_same_in_metrics, manual)
