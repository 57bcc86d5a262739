/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tshark reads our traces and agrees with our own decoder on every field of every packet: bulk,
 * small, aborted and dead calls, jumbograms, IPv6, encrypted payload, with losses.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rxwire/observe.h>

#include "base/wire.h"
#include "reader.h"
#include "tests/rx/api/harness.h"
#include "tests/rx/security/relay.h"

static char folder[64], path[128];
static unsigned port[16], ports;
static int file;
static struct h_bed bed;
static struct relay relay;

static void trace(rxw_endpoint *endpoint, unsigned snap)
{
	struct rxw_trace_options o = {.size = sizeof(o), .memory = 16 << 20, .snap = snap};

	ck_assert_int_eq(rxw_trace_start(endpoint, &o), 0);
}

/* The packets of both ends go into one file. */
static void collect(void)
{
	struct sockaddr_storage sa;
	socklen_t length = sizeof(sa);

	ck_assert_int_eq(rxw_endpoint_address(bed.server, &sa, &length), 0);
	port[ports++] = ntohs(
		((struct sockaddr_in *)&sa)->sin_port); /* at the same offset in both families */
	ck_assert_int_eq(rxw_trace_write(bed.server, file), 0);
	ck_assert_int_eq(rxw_trace_write(bed.client, file), 0);
}

/*
 * A jumbogram, which we do not send but others do: a request of two packets in one datagram, which
 * is answered.
 */
static void jumbogram(void)
{
	uint8_t head[H_ASK_SIZE], body[RXW_JUMBO_PAYLOAD + RXW_JUMBO_HEADER + 100] = {0},
									      packet[2048];
	struct h_raw raw = h_raw_request(head, H_ECHO, 0x1230);
	int fd = h_raw_socket(&bed);

	memcpy(body, head, sizeof(head));
	raw.flags = RXW_CLIENT_INITIATED | RXW_JUMBO_PACKET;
	raw.body = body;
	raw.size = sizeof(body);
	body[RXW_JUMBO_PAYLOAD] = RXW_CLIENT_INITIATED | RXW_LAST_PACKET;
	h_raw_send(fd, &raw);
	ck_assert_int_gt(h_raw_receive(fd, RXW_DATA, packet), 0);
	close(fd);
}

static void some_calls(const struct h_options *o, unsigned snap)
{
	rxw_connection *connection;

	h_open(&bed, o);
	trace(bed.server, snap);
	trace(bed.client, snap);
	connection = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, connection, &(struct h_ask){.op = H_BOTH, .bytes = 100000});
	h_good_call(&bed, connection, &(struct h_ask){.op = H_PING});
	ck_assert_int_eq(h_call(&bed, connection, &(struct h_ask){.op = H_ABORT, .code = 4711}),
			 4711);
	rxw_connection_release(connection);
	if (o->both)
		jumbogram();
	collect();
	h_close(&bed);
}

/* On the relay's thread: drops one in seven packets to the server, after the first few. */
static void lose(struct relay *r, bool to_server, uint8_t *data, size_t size)
{
	static unsigned n;

	if (to_server && type_of(data) == TYPE_DATA && ++n % 7 == 5)
		return;
	relay_pass(r, to_server, data, size);
}

static void lossy_calls(void)
{
	struct sockaddr_in silent = {.sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(silent);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	rxw_connection *connection;

	h_open(&bed, &(struct h_options){.security = "null"});
	trace(bed.server, 0);
	trace(bed.client, 0);
	relay_open(&relay, (const struct sockaddr_in *)&bed.address);
	atomic_store(&relay.filter, lose);
	ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&relay.address,
					       sizeof(relay.address), H_SERVICE, NULL, &connection),
			 0);
	h_good_call(&bed, connection, &(struct h_ask){.op = H_SINK, .bytes = 200000});
	rxw_connection_release(connection);
	port[ports++] = ntohs(relay.address.sin_port);
	/* A call that no server answers. */
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&silent, length), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&silent, &length), 0);
	ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&silent, length,
					       H_SERVICE, NULL, &connection),
			 0);
	ck_assert_int_eq(rxw_connection_set_timeouts(connection, 0, 0, 200), 0);
	ck_assert_int_eq(h_call(&bed, connection, &(struct h_ask){.op = H_PING}), RXW_CALL_TIMEOUT);
	rxw_connection_release(connection);
	port[ports++] = ntohs(silent.sin_port);
	collect();
	relay_close(&relay);
	close(fd);
	h_close(&bed);
}

static const char *const fields[] = {
	"rx.epoch",	    "rx.cid",	   "rx.callnumber", "rx.seq",
	"rx.serial",	    "rx.type",	   "rx.flags",	    "rx.userstatus",
	"rx.securityindex", "rx.spare",	   "rx.serviceid",  "udp.length",
	"udp.srcport",	    "udp.dstport", "_ws.malformed", "_ws.expert.severity",
	"frame.comment"};
#define FIELDS	  (sizeof(fields) / sizeof(fields[0]))
#define COMPLAINT (FIELDS - 3)

static FILE *ask_tshark(void)
{
	char command[4096];
	size_t n = (size_t)snprintf(
		command, sizeof(command),
		"TZ=UTC HOME=%s tshark -n -r %s --disable-protocol afs -o udp.check_checksum:TRUE "
		"-o ip.check_checksum:TRUE -T fields -E separator=/t -E occurrence=a "
		"'-E' 'aggregator=|'",
		folder, path);
	FILE *f;

	for (unsigned i = 0; i < ports; i++)
		n += (size_t)snprintf(command + n, sizeof(command) - n, " -d udp.port==%u,rx",
				      port[i]);
	for (unsigned i = 0; i < FIELDS; i++)
		n += (size_t)snprintf(command + n, sizeof(command) - n, " -e %s", fields[i]);
	snprintf(command + n, sizeof(command) - n, " 2> %s/errors", folder);
	f = popen(command, "r");
	ck_assert_ptr_nonnull(f);
	return f;
}

static bool leap(unsigned year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Epochs are shown as dates. They have 32 unsigned bits; time_t may have 32 with a sign. */
static void put_epoch(uint32_t epoch, char *text, size_t size)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	unsigned length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	unsigned day = epoch / 86400, second = epoch % 86400, year = 1970, month = 0;

	for (; day >= 365u + leap(year); year++)
		day -= 365u + leap(year);
	length[1] += leap(year);
	for (; day >= length[month]; month++)
		day -= length[month];
	snprintf(text, size, "%.3s %2u, %u %02u:%02u:%02u.000000000 UTC", months + 3 * month,
		 day + 1, year, second / 3600, second / 60 % 60, second % 60);
}

#define COMMENT		 0x100000u
#define CHAT		 0x200000u
#define TRACEROUTE_FIRST 33435u
#define TRACEROUTE_LAST	 33464u

static bool traceroutes(unsigned number)
{
	return number >= TRACEROUTE_FIRST && number <= TRACEROUTE_LAST;
}

/*
 * tshark reports each comment as expert information, with its own severity. It also takes every
 * datagram to or from some ports for traceroute; any free port may be one of those.
 */
static bool only_comments(const char *severities, const struct reader_packet *p)
{
	unsigned long allowed =
		traceroutes(p->from) || traceroutes(p->to) ? COMMENT | CHAT : COMMENT;
	char *end;

	for (const char *s = severities; *s; s = *end == '|' ? end + 1 : end)
		if (strtoul(s, &end, 0) & ~allowed || (*end && *end != '|'))
			return false;
	return true;
}

static void agrees(unsigned frame, const struct reader_packet *p, char *column[FIELDS])
{
	char epoch[96];
	struct rxw_header h;
	const uint32_t *w;

	ck_assert(rxw_header_get(p->data, p->kept, &h));
	w = (const uint32_t[]){h.cid,	      h.call,	     h.seq,	 h.serial, h.type,
			       h.flags,	      h.user_status, h.security, h.spare,  h.service,
			       8 + p->length, p->from,	     p->to};
	put_epoch(h.epoch, epoch, sizeof(epoch));
	/* Fields inside a RESPONSE are shown by the same name, after the others. */
	for (unsigned i = 0; i < COMPLAINT; i++)
		column[i][strcspn(column[i], "|")] = 0;
	ck_assert_msg(!strcmp(column[0], epoch), "frame %u: epoch \"%s\", not \"%s\"", frame,
		      column[0], epoch);
	for (unsigned i = 1; i < COMPLAINT; i++)
		ck_assert_msg(*column[i] && strtoul(column[i], NULL, 0) == w[i - 1],
			      "frame %u: %s is \"%s\", not %u", frame, fields[i], column[i],
			      w[i - 1]);
	ck_assert_msg(!*column[COMPLAINT] && only_comments(column[COMPLAINT + 1], p),
		      "frame %u, port %u to %u: \"%s\" of severities %s", frame, p->from, p->to,
		      column[COMPLAINT], column[COMPLAINT + 1]);
	for (unsigned i = 0; i < p->comments; i++)
		ck_assert_msg(strstr(column[FIELDS - 1], p->comment[i]) != NULL,
			      "frame %u: no comment \"%s\"", frame, p->comment[i]);
}

static void compare(const struct reader *r)
{
	FILE *f = ask_tshark();
	char *line = NULL;
	size_t room = 0;
	unsigned n = 0;

	while (getline(&line, &room, f) > 0) {
		char *column[FIELDS], *at = line;

		ck_assert_uint_lt(n, r->count);
		line[strcspn(line, "\n")] = 0;
		for (unsigned i = 0; i < FIELDS; i++) {
			column[i] = strsep(&at, "\t");
			ck_assert_msg(column[i] != NULL, "frame %u: %u columns", n + 1, i);
		}
		agrees(n + 1, &r->packet[n], column);
		n++;
	}
	free(line);
	ck_assert_int_eq(pclose(f), 0);
	ck_assert_uint_eq(n, r->count);
}

START_TEST(every_field)
{
	struct reader r;

	snprintf(folder, sizeof(folder), "/tmp/rxwire-tshark-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/all.pcapng", folder);
	file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_ge(file, 0);
	some_calls(&(struct h_options){.security = "null"}, 0);
	some_calls(&(struct h_options){.security = "null", .both = "jumbo=on"}, 65535);
	some_calls(&(struct h_options){.security = "rxkad-crypt"}, 65535);
	some_calls(&(struct h_options){.security = "rxgk-auth"}, 0);
	if (h_have_ipv6())
		some_calls(&(struct h_options){.security = "null", .ipv6 = true}, 2000);
	lossy_calls();
	close(file);
	reader_open(&r, path);
	ck_assert_uint_gt(r.count, 500);
	ck_assert_uint_ge(reader_comments(&r, "retransmits"), 1);
	ck_assert_uint_ge(reader_comments(&r, "with 4711"), 8);
	ck_assert_uint_eq(reader_comments(&r, "with -3"), 1);
	compare(&r);
	reader_free(&r);
	snprintf(path, sizeof(path), "rm -rf %s", folder);
	ck_assert_int_eq(system(path), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tshark");
	TCase *t = tcase_create("tshark");
	SRunner *r;
	int failed;

	if (system("tshark --version > /dev/null 2>&1") != 0) {
		puts("SKIP: tshark was not found (Debian package: tshark)");
		return 77;
	}
	tcase_set_timeout(t, 240);
	tcase_add_test(t, every_field);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
