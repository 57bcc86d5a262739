/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets recorded from OpenAFS: each decodes to the values in its file, and encodes to the same
 * bytes.
 */

#include "testing.h"

#include <inttypes.h>
#include <jansson.h>

#include "base/debugfmt.h"
#include "base/wire.h"

static const char *vector_file = "";

static json_t *load(const char *name)
{
	char path[512];
	json_error_t error;
	json_t *root;

	vector_file = name;
	snprintf(path, sizeof(path), "%s/vectors/%s", RXW_TEST_SRCDIR, name);
	root = json_load_file(path, 0, &error);
	ck_assert_msg(root != NULL, "%s:%d: %s", path, error.line, error.text);
	return root;
}

static const char *text(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	ck_assert_msg(s != NULL, "%s: no string \"%s\"", vector_file, key);
	return s;
}

static int64_t number(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	ck_assert_msg(json_is_integer(v), "%s: no number \"%s\"", vector_file, key);
	return json_integer_value(v);
}

static uint64_t hex_number(const json_t *object, const char *key)
{
	return strtoull(text(object, key), NULL, 16);
}

/* The bytes of a hex string, on the heap in their exact size. */
static uint8_t *bytes(const char *hex, size_t *size)
{
	uint8_t *p;

	*size = strlen(hex) / 2;
	ck_assert_uint_eq(strlen(hex) % 2, 0);
	p = malloc(*size ? *size : 1);
	ck_assert_ptr_nonnull(p);
	for (size_t i = 0; i < *size; i++) {
		unsigned v;

		ck_assert_int_eq(sscanf(hex + 2 * i, "%2x", &v), 1);
		p[i] = (uint8_t)v;
	}
	return p;
}

static void check_header(const struct rxw_header *h, const json_t *want, const char *id)
{
	ck_assert_msg(h->epoch == hex_number(want, "epoch"), "%s: epoch %08x", id, h->epoch);
	ck_assert_msg(h->cid == hex_number(want, "cid"), "%s: cid %08x", id, h->cid);
	ck_assert_msg((h->cid & 3) == number(want, "channel"), "%s: channel", id);
	ck_assert_msg(h->call == number(want, "callNumber"), "%s: call %u", id, h->call);
	ck_assert_msg(h->seq == number(want, "seq"), "%s: seq %u", id, h->seq);
	ck_assert_msg(h->serial == number(want, "serial"), "%s: serial %u", id, h->serial);
	ck_assert_msg(h->type == number(want, "type"), "%s: type %u", id, h->type);
	ck_assert_msg(h->flags == hex_number(want, "flags"), "%s: flags %02x", id, h->flags);
	ck_assert_msg(h->user_status == number(want, "userStatus"), "%s: status %u", id,
		      h->user_status);
	ck_assert_msg(h->security == number(want, "securityIndex"), "%s: security %u", id,
		      h->security);
	ck_assert_msg(h->spare == hex_number(want, "spare"), "%s: spare %04x", id, h->spare);
	ck_assert_msg(h->service == number(want, "serviceId"), "%s: service %u", id, h->service);
	ck_assert_str_eq(rxw_packet_type_name(h->type), text(want, "typeName"));
}

static void check_ack(const uint8_t *body, size_t size, const json_t *want, const char *id)
{
	uint8_t again[RXW_ACK_MAX_SIZE - RXW_HEADER_SIZE], *table;
	const json_t *trailer = json_object_get(want, "trailer");
	size_t count, put;
	struct rxw_ack ack;

	ck_assert_msg(rxw_ack_get(body, size, 0, &ack), "%s: does not decode", id);
	ck_assert_msg(ack.first == number(want, "firstPacket"), "%s: first %u", id, ack.first);
	ck_assert_msg(ack.previous == number(want, "previousPacket"), "%s: previous %u", id,
		      ack.previous);
	ck_assert_msg(ack.serial == number(want, "serial"), "%s: serial %u", id, ack.serial);
	ck_assert_msg(ack.reason == number(want, "reason"), "%s: reason %u", id, ack.reason);
	ck_assert_msg(ack.count == number(want, "nAcks"), "%s: nAcks %u", id, ack.count);
	table = bytes(text(want, "acks"), &count);
	ck_assert_uint_eq(count, ack.count);
	ck_assert_mem_eq(table, ack.acks, count);
	free(table);
	ck_assert_uint_eq(ack.trailer_words, 4);
	ck_assert_int_eq(ack.max_mtu, number(trailer, "maxMTU"));
	ck_assert_int_eq(ack.if_mtu, number(trailer, "ifMTU"));
	ck_assert_int_eq(ack.rwind, number(trailer, "rwind"));
	ck_assert_int_eq(ack.jumbo_max, number(trailer, "jumboMax"));
	put = rxw_ack_put(again, &ack);
	ck_assert_msg(put + (size_t)number(want, "paddingBytes") == size, "%s: %zu bytes of %zu",
		      id, put, size);
	ck_assert_msg(!memcmp(again, body, put), "%s: encodes otherwise", id);
}

/* `members` NULL: a plain packet of `length` bytes. */
static void check_data(const uint8_t *p, size_t size, const json_t *members, int64_t length,
		       const char *id)
{
	const uint8_t *payload;
	struct rxw_jumbo j;
	struct rxw_header h;
	size_t got, n = members ? json_array_size(members) : 1;

	ck_assert(rxw_jumbo_init(&j, p, size));
	for (size_t i = 0; i < n; i++) {
		const json_t *want = json_array_get(members, i);

		ck_assert_msg(rxw_jumbo_next(&j, &h, &payload, &got) == 1, "%s: member %zu", id, i);
		if (!members) {
			ck_assert_int_eq((int64_t)got, length);
			continue;
		}
		ck_assert_msg(h.seq == number(want, "seq"), "%s: seq %u", id, h.seq);
		ck_assert_msg(h.serial == number(want, "serial"), "%s: serial %u", id, h.serial);
		ck_assert_msg(h.flags == hex_number(want, "flags"), "%s: flags %02x", id, h.flags);
		ck_assert_msg(h.spare == hex_number(want, "spare"), "%s: spare %04x", id, h.spare);
		ck_assert_int_eq(payload - p, number(want, "dataOffset"));
		ck_assert_int_eq((int64_t)got, number(want, "dataLength"));
	}
	ck_assert_int_eq(rxw_jumbo_next(&j, &h, &payload, &got), 0);
}

/* One packet with `hex` and `fields`; returns its type. */
static unsigned check_packet(const json_t *vector)
{
	const char *id = json_string_value(json_object_get(vector, "id"));
	const json_t *fields = json_object_get(vector, "fields"), *part;
	uint8_t again[RXW_HEADER_SIZE];
	struct rxw_header h;
	size_t size;
	uint8_t *p = bytes(text(vector, "hex"), &size);

	id = id ? id : vector_file;
	if (json_object_get(vector, "udpPayloadLength"))
		ck_assert_int_eq((int64_t)size, number(vector, "udpPayloadLength"));
	ck_assert_msg(rxw_header_get(p, size, &h), "%s: no header", id);
	check_header(&h, json_object_get(fields, "header"), id);
	rxw_header_put(again, &h);
	ck_assert_mem_eq(again, p, RXW_HEADER_SIZE);
	part = json_object_get(fields, "ack");
	ck_assert_msg(!part == (h.type != RXW_ACK), "%s: type %u", id, h.type);
	if (part)
		check_ack(p + RXW_HEADER_SIZE, size - RXW_HEADER_SIZE, part, id);
	part = json_object_get(fields, "abort");
	if (part) {
		int32_t code;

		ck_assert(rxw_abort_get(p + RXW_HEADER_SIZE, size - RXW_HEADER_SIZE, &code));
		ck_assert_int_eq(code, number(part, "code"));
	}
	if (h.type == RXW_DATA) {
		const json_t *length = json_object_get(fields, "dataLength");

		check_data(p, size, json_object_get(fields, "jumbogram"),
			   json_integer_value(length), id);
	}
	free(p);
	return h.type;
}

static size_t check_file(const char *name, unsigned seen[16])
{
	json_t *root = load(name), *vector;
	size_t index, n;

	json_array_foreach(json_object_get(root, "vectors"), index, vector)
		seen[check_packet(vector) % 16]++;
	n = index;
	json_decref(root);
	return n;
}

START_TEST(packets)
{
	unsigned seen[16] = { 0 };

	ck_assert_uint_eq(check_file("packets-data.json", seen), 8);
	ck_assert_uint_eq(check_file("packets-jumbo.json", seen), 5);
	ck_assert_uint_eq(check_file("packets-ack.json", seen), 14);
	ck_assert_uint_eq(check_file("packets-misc.json", seen), 21);
	for (unsigned type = RXW_DATA; type <= RXW_ACKALL; type++)
		ck_assert_msg(seen[type], "no packet of type %u", type);
	ck_assert_uint_gt(seen[RXW_DEBUG], 0);
	ck_assert_uint_gt(seen[RXW_VERSION], 0);
}
END_TEST

/* The exchanges of the security classes: headers and ACKs only. */
static void check_exchanges(const char *name, size_t exchanges, unsigned classes)
{
	json_t *root = load(name), *exchange, *packet;
	unsigned seen[16] = { 0 };
	size_t i, k;

	json_array_foreach(json_object_get(root, "exchanges"), i, exchange)
		json_array_foreach(json_object_get(exchange, "packets"), k, packet)
			seen[check_packet(packet) % 16]++;
	ck_assert_uint_eq(i, exchanges);
	ck_assert_uint_gt(seen[RXW_CHALLENGE], 0);
	ck_assert_uint_gt(seen[RXW_RESPONSE], 0);
	json_array_foreach(json_object_get(root, "errors"), i, packet)
	{
		struct rxw_header h;
		size_t size;
		int32_t code;
		uint8_t *p = bytes(text(packet, "responseHex"), &size);

		ck_assert(rxw_header_get(p, size, &h));
		ck_assert_uint_eq(h.type, RXW_RESPONSE);
		ck_assert_uint_eq(h.security, classes);
		free(p);
		p = bytes(text(packet, "abortHex"), &size);
		ck_assert(rxw_header_get(p, size, &h));
		ck_assert_uint_eq(h.type, RXW_ABORT);
		ck_assert_int_eq(h.call, number(packet, "callNumber"));
		ck_assert(rxw_abort_get(p + RXW_HEADER_SIZE, size - RXW_HEADER_SIZE, &code));
		ck_assert_int_eq(code, number(packet, "abortCode"));
		free(p);
	}
	json_decref(root);
}

START_TEST(rxkad)
{
	check_exchanges("rxkad-exchanges.json", 20, 2);
}
END_TEST

START_TEST(rxgk)
{
	check_exchanges("rxgk-exchanges.json", 6, 4);
}
END_TEST

/* The value after " name=" in a summary line. */
static int64_t summary(const char *line, const char *name, int base)
{
	char key[24];
	const char *at;

	snprintf(key, sizeof(key), " %s=", name);
	at = strstr(line, key);
	ck_assert_msg(at != NULL, "no%s in: %s", key, line);
	return strtoll(at + strlen(key), NULL, base);
}

START_TEST(scenarios)
{
	json_t *root = load("scenarios.json"), *scenario, *step;
	size_t i, k, steps = 0, acks = 0;

	json_array_foreach(json_object_get(root, "scenarios"), i, scenario)
	{
		json_array_foreach(json_object_get(scenario, "steps"), k, step)
		{
			const char *line = text(step, "summary");
			struct rxw_header h;
			struct rxw_ack ack;
			size_t size;
			uint8_t *p = bytes(text(step, "hex"), &size);

			steps++;
			if (!rxw_header_get(p, size, &h)) {
				ck_assert_uint_lt(size, RXW_HEADER_SIZE);
				free(p);
				continue;
			}
			ck_assert_int_eq(h.epoch, summary(line, "ep", 16));
			ck_assert_int_eq(h.cid, summary(line, "cid", 16));
			ck_assert_int_eq(h.call, summary(line, "call", 10));
			ck_assert_int_eq(h.seq, summary(line, "seq", 10));
			ck_assert_int_eq(h.serial, summary(line, "ser", 10));
			ck_assert_int_eq(h.flags, summary(line, "fl", 16));
			ck_assert_int_eq(h.security, summary(line, "sec", 10));
			ck_assert_int_eq(h.spare, summary(line, "ck", 16));
			ck_assert_int_eq(h.service, summary(line, "svc", 10));
			if (h.type == RXW_ACK && rxw_ack_get(p + 28, size - 28, 0, &ack)) {
				acks++;
				ck_assert_int_eq(ack.first, summary(line, "first", 10));
				ck_assert_int_eq(ack.previous, summary(line, "prev", 10));
				ck_assert_int_eq(ack.serial, summary(line, "aser", 10));
				ck_assert_int_eq(ack.count, summary(line, "n", 10));
			}
			free(p);
		}
	}
	ck_assert_uint_eq(i, 36);
	ck_assert_uint_ge(steps, 148);
	ck_assert_uint_gt(acks, 30);
	json_decref(root);
}
END_TEST

/*
 * -- DEBUG and VERSION answers: bytes to values, and values to our bytes ------------------------
 */

static json_t *vector_of(const json_t *root, const char *id)
{
	json_t *vector;
	size_t i;

	json_array_foreach(json_object_get(root, "vectors"), i,
			   vector) if (!strcmp(text(vector, "id"), id)) return vector;
	ck_abort_msg("%s: no vector %s", vector_file, id);
	return NULL;
}

static uint8_t *body_of(const json_t *root, const char *id, size_t want)
{
	size_t size;
	uint8_t *p = bytes(text(vector_of(root, id), "hex"), &size), *body;

	ck_assert_uint_eq(size, RXW_HEADER_SIZE + want);
	body = malloc(want);
	memcpy(body, p + RXW_HEADER_SIZE, want);
	free(p);
	return body;
}

START_TEST(debug_requests)
{
	static const char *const ids[] = {
		"debug-type1-entry-request", "debug-type3-entry-request", "debug-type3-end-request",
		"debug-type4-entry-request", "debug-type5-entry-request", "debug-type5-end-request",
	};
	json_t *root = load("packets-misc.json");

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		const json_t *want = json_object_get(vector_of(root, ids[i]), "request");
		uint8_t *body = body_of(root, ids[i], 8);
		int32_t type, index;

		rxw_debug_request_get(body, 8, &type, &index);
		ck_assert_int_eq(type, number(want, "type"));
		ck_assert_int_eq(index, number(want, "index"));
		free(body);
	}
	json_decref(root);
}
END_TEST

START_TEST(debug_stats)
{
	json_t *root = load("packets-misc.json");
	const json_t *want = json_object_get(vector_of(root, "debug-type1-entry-reply"), "decoded");
	uint8_t *body = body_of(root, "debug-type1-entry-reply", 56), again[56];
	struct rxw_debug_stats v;

	ck_assert(rxw_debug_stats_get(body, 56, &v));
	ck_assert_int_eq(v.free_packets, number(want, "nFreePackets"));
	ck_assert_int_eq(v.reclaims, number(want, "packetReclaims"));
	ck_assert_int_eq(v.calls_executed, number(want, "callsExecuted"));
	ck_assert_int_eq(v.used_fds, number(want, "usedFDs"));
	ck_assert_int_eq(v.idle_threads, number(want, "idleThreads"));
	ck_assert_int_eq(v.packets, number(want, "nPackets"));
	ck_assert_uint_eq(rxw_debug_stats_put(again, &v), 56);
	ck_assert_mem_eq(again, body, 56);
	free(body);
	json_decref(root);
}
END_TEST

START_TEST(debug_connections)
{
	json_t *root = load("packets-misc.json");
	const json_t *want = json_object_get(vector_of(root, "debug-type3-entry-reply"), "decoded");
	uint8_t *body = body_of(root, "debug-type3-entry-reply", 176), again[176];
	struct rxw_debug_conn v;
	char host[16];

	ck_assert(rxw_debug_conn_get(body, 176, &v));
	snprintf(host, sizeof(host), "%u.%u.%u.%u", v.host[0], v.host[1], v.host[2], v.host[3]);
	ck_assert_str_eq(host, text(want, "host"));
	ck_assert_uint_eq(v.cid, hex_number(want, "cid"));
	ck_assert_int_eq(v.port, number(want, "port"));
	ck_assert_int_eq(v.type, number(want, "type"));
	ck_assert_uint_eq(v.epoch, hex_number(want, "epoch"));
	ck_assert_int_eq(v.nat_mtu, number(want, "natMTU"));
	ck_assert_uint_eq(rxw_debug_conn_put(again, &v), 176);
	ck_assert_mem_eq(again, body, 176);
	free(body);
	body = body_of(root, "debug-type3-end-reply", 176);
	rxw_debug_conn_end_put(again);
	ck_assert_mem_eq(again, body, 176);
	free(body);
	json_decref(root);
}
END_TEST

START_TEST(debug_rxstats)
{
	json_t *root = load("packets-misc.json");
	const json_t *want =
		json_object_get(vector_of(root, "debug-type4-entry-reply"), "decodedWords");
	uint8_t *body = body_of(root, "debug-type4-entry-reply", 284), again[284];
	struct rxw_debug_rxstats v;

	ck_assert(rxw_debug_rxstats_get(body, 284, &v));
	ck_assert_uint_eq(json_array_size(want), 71);
	for (size_t i = 0; i < 71; i++)
		ck_assert_int_eq((int32_t)v.word[i], json_integer_value(json_array_get(want, i)));
	rxw_debug_rxstats_put(again, &v);
	ck_assert_mem_eq(again, body, 284);
	free(body);
	json_decref(root);
}
END_TEST

START_TEST(debug_peers)
{
	json_t *root = load("packets-misc.json");
	const json_t *want = json_object_get(vector_of(root, "debug-type5-entry-reply"), "decoded");
	uint8_t *body = body_of(root, "debug-type5-entry-reply", 132), again[132];
	struct rxw_debug_peer v;

	ck_assert(rxw_debug_peer_get(body, 132, &v));
	ck_assert_int_eq(v.port, number(want, "port"));
	ck_assert_int_eq(v.if_mtu, number(want, "ifMTU"));
	ck_assert_int_eq(v.refs, number(want, "refCount"));
	ck_assert_int_eq(v.rtt, number(want, "rtt"));
	ck_assert_int_eq(v.sent, number(want, "nSent"));
	ck_assert_int_eq(v.max_mtu, number(want, "maxMTU"));
	ck_assert_int_eq(v.max_dgram_packets, number(want, "maxDgramPackets"));
	ck_assert_int_eq(v.mtu, number(want, "MTU"));
	ck_assert_int_eq(v.cwind, number(want, "cwind"));
	ck_assert_int_eq((int64_t)v.bytes_sent, number(want, "bytesSent"));
	ck_assert_int_eq((int64_t)v.bytes_received, number(want, "bytesReceived"));
	rxw_debug_peer_put(again, &v);
	ck_assert_mem_eq(again, body, 132);
	free(body);
	body = body_of(root, "debug-type5-end-reply", 132);
	rxw_debug_peer_end_put(again);
	ck_assert_mem_eq(again, body, 132);
	free(body);
	body = body_of(root, "debug-bad-type", 8);
	rxw_debug_bad_put(again);
	ck_assert_mem_eq(again, body, 8);
	free(body);
	json_decref(root);
}
END_TEST

/*
 * Answers made from the recorded requests: equal to OpenAFS's except for its byte order defect in
 * stateless aborts.
 */
START_TEST(answers)
{
	json_t *root = load("packets-misc.json");
	struct rxw_header h;
	size_t size;
	uint8_t out[128], *want;
	uint8_t *p = bytes(text(vector_of(root, "version-request"), "hex"), &size);

	ck_assert(rxw_header_get(p, size, &h));
	free(p);
	want = bytes(text(vector_of(root, "version-reply"), "hex"), &size);
	ck_assert_uint_eq(rxw_version_put(out, &h, (const char *)want + RXW_HEADER_SIZE), size);
	ck_assert_mem_eq(out, want, size);
	free(want);
	want = bytes(text(vector_of(root, "abort-raw"), "hex"), &size);
	ck_assert(rxw_header_get(want, size, &h));
	h.flags ^= RXW_CLIENT_INITIATED; /* the request came from the other side */
	h.service = h.service ? h.service : h.spare;
	ck_assert_uint_eq(rxw_stateless_abort_put(out, &h, -2), size);
	ck_assert_mem_eq(out, want, 24);
	ck_assert_mem_eq(out + 28, want + 28, 4);
	ck_assert_uint_eq(rxw_get16(out + 24), 0);
	ck_assert_uint_eq(rxw_get16(out + 26), h.service);
	free(want);
	json_decref(root);
}
END_TEST

TEST_MAIN("vectors", packets, rxkad, rxgk, scenarios, debug_requests, debug_stats,
	  debug_connections, debug_rxstats, debug_peers, answers)
