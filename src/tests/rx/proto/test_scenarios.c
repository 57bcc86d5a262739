/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replays the sequences of vectors/scenarios.json, recorded against another server, against ours.
 * Our packets must match byte for byte, except for the differences of rx-protocol 13 in the table
 * below.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define MOST_STEPS 16

struct step {
	unsigned ms;
	bool send, port_b, matched, optional;
	uint32_t length;
	uint8_t bytes[2048];
};

struct scenario {
	char name[64];
	struct step steps[MOST_STEPS];
	unsigned count;
};

/* --- a reader for this file, whose objects have a fixed order --- */

static char *load(const char *name)
{
	char path[1024];
	FILE *f;
	long size;
	char *text;

	snprintf(path, sizeof(path), "%s/vectors/%s", RXW_TEST_SRCDIR, name);
	f = fopen(path, "rb");
	ck_assert_msg(f != NULL, "%s is missing", path);
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	rewind(f);
	text = malloc((size_t)size + 1);
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_eq(fread(text, 1, (size_t)size, f), (size_t)size);
	text[size] = '\0';
	fclose(f);
	return text;
}

static const char *value_of(const char *from, const char *end, const char *name)
{
	char quoted[64];
	const char *p;

	snprintf(quoted, sizeof(quoted), "\"%s\":", name);
	p = strstr(from, quoted);
	if (p == NULL || p >= end)
		return NULL;
	for (p += strlen(quoted); isspace((unsigned char)*p) || *p == '"'; p++)
		;
	return p;
}

static void read_step(struct step *s, const char *from, const char *end)
{
	const char *p = value_of(from, end, "hex");

	memset(s, 0, sizeof(*s));
	s->ms = (unsigned)strtoul(value_of(from, end, "ms"), NULL, 10);
	s->send = strncmp(value_of(from, end, "dir"), "send", 4) == 0;
	s->port_b = value_of(from, end, "from") != NULL || value_of(from, end, "at") != NULL;
	for (; isxdigit((unsigned char)p[0]) && isxdigit((unsigned char)p[1]); p += 2) {
		char two[3] = {p[0], p[1], '\0'};

		s->bytes[s->length++] = (uint8_t)strtoul(two, NULL, 16);
	}
}

/* The next scenario of the text, or NULL at the end. */
static const char *read_scenario(struct scenario *s, const char *p)
{
	const char *end, *name;

	memset(s, 0, sizeof(*s));
	p = strstr(p, "\"name\":");
	if (p == NULL)
		return NULL;
	end = strstr(p + 1, "\"name\":");
	if (end == NULL)
		end = p + strlen(p);
	name = value_of(p, end, "name");
	for (unsigned i = 0; name[i] != '"' && i < sizeof(s->name) - 1; i++)
		s->name[i] = name[i];
	for (p = strstr(p, "\"steps\""); (p = strstr(p, "\"ms\":")) != NULL && p < end;) {
		const char *next = strstr(p + 1, "\"ms\":");

		ck_assert_uint_lt(s->count, MOST_STEPS);
		if (next == NULL || next > end)
			next = end;
		read_step(&s->steps[s->count++], p, next);
		p = next - 1;
	}
	return end;
}

/* --- our server: the parts of an endpoint that the scenarios need --- */

static struct bench b;

/* Serves operation 504 with a name of 64 words, and refuses others as its interface would. */
static void serve(struct bench_call *call, uint32_t events)
{
	struct rxw_pcall *p = &call->p;
	struct rxw_rxpiece pieces[16];
	static uint8_t body[64][512];
	static unsigned length[64];
	static struct bench_call *owner[64];
	unsigned n, slot, packets = 0;
	bool ended;

	(void)events;
	if (p->state != RXW_CS_ACTIVE)
		return;
	for (slot = 0; owner[slot] != call && owner[slot] != NULL; slot++)
		;
	if (owner[slot] == NULL || p->rx.consumed == 1)
		length[slot] = 0;
	owner[slot] = call;
	while ((n = rxw_pcall_take(p, pieces, 16)) > 0)
		for (unsigned i = 0; i < n; i++) {
			for (unsigned k = 0; k < pieces[i].count; k++) {
				unsigned size = k + 1u == pieces[i].count ? pieces[i].last_length
									  : pieces[i].length;

				memcpy(body[slot] + length[slot],
				       pieces[i].data + (size_t)k * pieces[i].stride, size);
				length[slot] += size;
			}
			packets += pieces[i].count;
			rxw_buf_unref(pieces[i].buf);
		}
	rxw_pcall_consumed(p, packets, &b.out);
	rxw_pcall_read_pause(p, &b.out);
	rxw_pcall_readable(p, &ended);
	if (length[slot] >= 4 && rxw_get32(body[slot]) != 504) {
		rxw_pcall_fail(p, -455, RXW_ORIGIN_LOCAL, true, &b.out);
	} else if (ended && length[slot] < 264) {
		rxw_pcall_fail(p, length[slot] < 4 ? -454 : -453, RXW_ORIGIN_LOCAL, true, &b.out);
	} else if (ended && !p->tx.all_queued) {
		struct rxw_txrun run = {.stride = 36, .last_size = 36, .count = 1, .last = true};

		run.buf = rxw_buf_get_small(b.pool, 36);
		run.data = run.buf->data;
		memset(run.data, 0, 28);
		rxw_put32(run.data + 28, 1);
		rxw_put32(run.data + 32, 1);
		ck_assert_int_eq(rxw_pcall_push(p, &run, &b.out), 0);
		rxw_pcall_finish(p, &b.out);
	}
}

/* Checks 1 to 6 of 1.8, done by an endpoint. The connection does the others. */
static void receive(struct bench *bench, const struct step *s)
{
	struct rxw_path path = {0};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(s->port_b ? 7002 : 7001)};
	struct rxw_pconn *c, *other;
	struct rxw_header h;
	struct rxw_ctl *ctl = &bench->ctl[0];

	in.sin_addr.s_addr = htonl(0x0a000002);
	rxw_addr_set(&path.peer, (struct sockaddr *)&in, sizeof(in));
	if (!rxw_header_get(s->bytes, s->length, &h))
		return;
	if (h.type == RXW_VERSION || h.type == RXW_DEBUG) {
		if (h.type == RXW_VERSION && (h.flags & RXW_CLIENT_INITIATED)) {
			ctl->path = path;
			ctl->length = (uint16_t)rxw_version_put(ctl->bytes, &h, "rxwire");
			ctl->padding = 0;
			bench->out.ctl_count = 1;
		}
		bench_settle(bench);
		return;
	}
	if (!(h.flags & RXW_CLIENT_INITIATED))
		return;
	c = rxw_conntable_find(&bench->table, false, h.epoch, h.cid, &path.peer, &other);
	if (c == NULL && (h.service != BENCH_SERVICE || h.security != 0)) {
		if (h.type == RXW_DATA) {
			ctl->path = path;
			ctl->length = (uint16_t)rxw_stateless_abort_put(ctl->bytes, &h,
									RXW_INVALID_OPERATION);
			ctl->padding = 0;
			bench->out.ctl_count = 1;
			bench_settle(bench);
		}
		return;
	}
	if (c == NULL && other != NULL && (h.epoch & 0x80000000u) &&
	    h.call <= other->number[h.cid & 3])
		return; /* 2.3: the same call from another port */
	if (c == NULL && (h.type != RXW_DATA || h.call == 0))
		return;
	if (c == NULL)
		c = &bench_conn(bench, h.epoch, h.cid, s->port_b ? 7002 : 7001)->p;
	bench_feed(bench, (struct bench_conn *)c, s->bytes, s->length, s->length);
}

/* --- the differences of our server --- */

enum change {
	LEAVE_OUT, /* ours does not send it */
	AT,	   /* at this time */
	PREVIOUS,  /* previousPacket */
	ADD_ABORT, /* ours sends this: an ABORT with code `value` and serial `more` */
	ADD_REPLY, /* the usual reply, serial in `more` */
	/* PING_RESPONSE to the serial `value`, serial in `more`, else like the previous step */
	ADD_ANSWER,
	SERIAL,	 /* the header's serial */
	SERVICE, /* serviceId in its own field, spare 0 */
	OWN_TEXT /* VERSION: the header only */
};

static const struct difference {
	const char *name;
	unsigned step; /* of the vector; for additions the time in ms */
	enum change change;
	int value;
	unsigned more;
} differences[] = {
	{"unknown-service", 1, SERVICE, 999, 0},
	{"security-index-not-offered", 1, SERVICE, 73, 0},
	{"data-seq-0", 1, LEAVE_OUT, 0, 0},
	{"type-12-call-0", 1, LEAVE_OUT, 0, 0},
	{"type-12-call-0", 3, LEAVE_OUT, 0, 0},
	{"type-12-call-0", 300, ADD_REPLY, 1, 1},
	{"data-call-0", 1, LEAVE_OUT, 0, 0},
	{"type-14-on-live-call", 2, LEAVE_OUT, 0, 0},
	{"busy", 1, AT, 50, 0},
	{"ping-live-call", 1, AT, 50, 0},
	{"ping-live-call", 400, ADD_ANSWER, 78, 3},
	{"ping-live-call", 6, SERIAL, 4, 0},
	{"client-abort", 1, AT, 50, 0},
	{"server-keepalive", 1, AT, 50, 0},
	{"address-change-high-bit", 1, AT, 50, 0},
	{"address-change-high-bit", 3, LEAVE_OUT, 0, 0},
	/* the client acknowledges packets that were never sent */
	{"address-change-high-bit", 400, ADD_ABORT, -5, 2},
	{"address-change-no-high-bit", 1, AT, 53, 0},
	{"out-of-order", 3, PREVIOUS, 3, 0},
	{"out-of-order", 5, PREVIOUS, 3, 0},
	{"out-of-order", 7, PREVIOUS, 3, 0},
	{"out-of-order", 8, PREVIOUS, 3, 0},
	{"out-of-order", 8, AT, 652, 0},
	{"data-after-last", 3, LEAVE_OUT, 0, 0},
	{"data-after-last", 5, LEAVE_OUT, 0, 0},
	{"data-after-last", 100, ADD_ABORT, -5, 2},
	{"data-after-last", 200, ADD_ABORT, -5, 3},
	{"service-id-change", 3, LEAVE_OUT, 0, 0},
	{"version", 1, OWN_TEXT, 0, 0},
	{"version", 3, OWN_TEXT, 0, 0},
	{"debug-bad-type", 1, LEAVE_OUT, 0, 0}, /* answered by the endpoint, tested with it */
	{"debug-bad-type", 3, LEAVE_OUT, 0, 0},
	{"ackall", 3, LEAVE_OUT, 0, 0},
	/* Retransmission and keepalive use our own timers, and are checked below. */
	{"reply-not-acked", 2, LEAVE_OUT, 0, 0},
	{"reply-not-acked", 3, LEAVE_OUT, 0, 0},
	{"reply-not-acked", 4, LEAVE_OUT, 0, 0},
	{"server-keepalive", 2, LEAVE_OUT, 0, 0},
	{"server-keepalive", 3, LEAVE_OUT, 0, 0},
	{"server-keepalive", 4, LEAVE_OUT, 0, 0},
};

static bool text_free;

static void add(struct scenario *s, const struct difference *d)
{
	struct step *step = &s->steps[s->count];
	struct rxw_header h;

	ck_assert_uint_lt(s->count, MOST_STEPS);
	s->count++;
	memset(step, 0, sizeof(*step));
	rxw_header_get(s->steps[0].bytes, s->steps[0].length, &h);
	h.flags = 0;
	h.call = 1;
	h.seq = 0;
	h.serial = d->more;
	step->ms = d->step;
	if (d->change == ADD_ANSWER) {
		*step = s->steps[3];
		step->ms = d->step;
		step->matched = false;
		rxw_put32(step->bytes + 16, d->more);
		rxw_put32(step->bytes + 28 + 12, (uint32_t)d->value);
		return;
	}
	if (d->change == ADD_ABORT) {
		h.type = RXW_ABORT;
		rxw_put32(step->bytes + 28, (uint32_t)d->value);
		step->length = 32;
	} else {
		h.type = RXW_DATA;
		h.seq = 1;
		h.flags = RXW_LAST_PACKET;
		rxw_put32(step->bytes + 28, 1);
		rxw_put32(step->bytes + 32, 1);
		step->length = 36;
	}
	rxw_header_put(step->bytes, &h);
}

static void apply(struct scenario *s)
{
	for (unsigned i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
		const struct difference *d = &differences[i];
		struct step *step = &s->steps[d->step < MOST_STEPS ? d->step : 0];

		if (strcmp(d->name, s->name) != 0)
			continue;
		switch (d->change) {
		case LEAVE_OUT:
			step->matched = true;
			break;
		case AT:
			step->ms = (unsigned)d->value;
			break;
		case SERIAL:
			rxw_put32(step->bytes + 16, (uint32_t)d->value);
			break;
		case PREVIOUS:
			rxw_put32(step->bytes + 28 + 8, (uint32_t)d->value);
			break;
		case SERVICE:
			rxw_put16(step->bytes + 24, 0);
			rxw_put16(step->bytes + 26, (uint16_t)d->value);
			break;
		case OWN_TEXT:
			text_free = true;
			break;
		default:
			add(s, d);
			break;
		}
	}
}

static bool same(const struct step *s, const struct bench_packet *k, uint64_t start)
{
	uint64_t ms = (k->at - start) / RXW_MS;

	if (ms + 2 < s->ms || ms > s->ms + 4u || k->port != (s->port_b ? 7002u : 7001u) ||
	    k->length != s->length)
		return false;
	return memcmp(k->bytes, s->bytes, text_free ? 28 : s->length) == 0;
}

static void describe(const char *what, const struct bench_packet *k, uint64_t start)
{
	printf("  %s at %llu ms:", what, (unsigned long long)((k->at - start) / RXW_MS));
	for (unsigned i = 0; i < k->length && i < 80; i++)
		printf("%s%02x", i % 4 == 0 ? " " : "", k->bytes[i]);
	printf("\n");
}

/* Our server asks for an ACK of data. The recorded one accepts the ACK itself as validation. */
static bool asks_for_proof(const struct bench_packet *k)
{
	return k->h.type == RXW_ACK && k->ack.reason == RXW_ACK_PING && k->h.serial >= 1u << 24;
}

static unsigned unexpected(struct scenario *s, uint64_t start)
{
	unsigned wrong = 0;
	struct bench_packet *k;

	while ((k = bench_next(&b)) != NULL) {
		bool found = false;

		for (unsigned i = 0; i < s->count && !found; i++) {
			struct step *step = &s->steps[i];

			found = !step->send && !step->matched && same(step, k, start);
			step->matched |= found;
		}
		if (!found && !asks_for_proof(k)) {
			describe("not expected", k, start);
			wrong++;
		}
	}
	return wrong;
}

static unsigned missing(const struct scenario *s)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < s->count; i++)
		if (!s->steps[i].send && !s->steps[i].matched) {
			printf("  missing: step %u at %u ms\n", i, s->steps[i].ms);
			wrong++;
		}
	return wrong;
}

static void run_steps(struct scenario *s, uint64_t start)
{
	for (unsigned i = 0; i < s->count; i++) {
		uint64_t at = start + s->steps[i].ms * RXW_MS;

		if (!s->steps[i].send)
			continue;
		if (at > b.out.now)
			bench_pass(&b, at - b.out.now);
		receive(&b, &s->steps[i]);
		/* Packets of the same millisecond form one batch. */
		if (i + 1 < s->count && s->steps[i + 1].send &&
		    s->steps[i + 1].ms == s->steps[i].ms)
			continue;
		for (struct bench_conn *c = b.conns; c != NULL; c = c->next)
			bench_end(&b, c, true);
	}
}

static unsigned one(struct scenario *s)
{
	unsigned wrong, last = 0;
	uint64_t start;

	bench_init(&b, false);
	b.params.window = 32;
	/* hard acknowledgement on consumption, as in the other server */
	b.params.unread_packets = 0;
	b.on_events = serve;
	text_free = false;
	start = b.out.now;
	apply(s);
	run_steps(s, start);
	for (unsigned i = 0; i < s->count; i++)
		if (!s->steps[i].matched && s->steps[i].ms > last)
			last = s->steps[i].ms;
	if (start + (last + 5) * RXW_MS > b.out.now)
		bench_pass(&b, start + (last + 5) * RXW_MS - b.out.now);
	if (strcmp(s->name, "reply-not-acked") == 0) {
		/* With new serials and REQUEST_ACK, at growing intervals, until the ACK. */
		uint64_t previous = 0, gap = 0;
		unsigned again = 0, kept = 0;

		for (unsigned i = 0; i < b.count; i++) {
			struct bench_packet *k = &b.sent[i];

			if (k->h.type == RXW_ACK || i == 0) {
				b.sent[kept++] = *k;
				continue;
			}
			ck_assert_uint_eq(k->h.flags, RXW_REQUEST_ACK | RXW_LAST_PACKET);
			ck_assert_uint_ge(k->at - (previous ? previous : start), gap);
			gap = k->at - (previous ? previous : start);
			previous = k->at;
			again++;
		}
		ck_assert_uint_ge(again, 2);
		b.count = kept;
		bench_pass(&b, 60 * RXW_SEC);
		for (unsigned i = kept; i < b.count; i++)
			ck_assert_uint_ne(b.sent[i].h.type, RXW_DATA);
		b.count = 1;
	} else if (strcmp(s->name, "server-keepalive") == 0) {
		unsigned pings = 0;

		bench_pass(&b, 30 * RXW_SEC);
		for (unsigned i = 1; i < b.count; i++)
			pings +=
				b.sent[i].h.type == RXW_ACK && b.sent[i].ack.reason == RXW_ACK_PING;
		ck_assert_uint_eq(pings, b.count - 1); /* and silence at the end, no ABORT */
		ck_assert_uint_ge(pings, 1);
		ck_assert_uint_le(pings, 2); /* the address is not validated: 12.3 */
		ck_assert_int_eq(bench_channel(b.conns, 0)->error, RXW_CALL_DEAD);
		b.count = 1;
	} else if (strcmp(s->name, "ackall") == 0 || strcmp(s->name, "soft-ack-only") == 0) {
		bench_pass(&b, 30 * RXW_SEC);
		ck_assert_int_eq(bench_channel(b.conns, 0)->state, RXW_CS_DALLY);
	}
	wrong = unexpected(s, start) + missing(s);
	bench_free(&b);
	return wrong;
}

START_TEST(scenarios)
{
	char *text = load("scenarios.json");
	const char *p = text;
	struct scenario s;
	unsigned count = 0, wrong = 0;

	while ((p = read_scenario(&s, p)) != NULL) {
		unsigned n = one(&s);

		count++;
		if (n > 0)
			printf("scenario %s: %u differences\n", s.name, n);
		wrong += n;
	}
	free(text);
	ck_assert_uint_eq(count, 36);
	ck_assert_uint_eq(wrong, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("scenarios");
	TCase *tcase = tcase_create("scenarios");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, scenarios);
	return bench_main(suite);
}
