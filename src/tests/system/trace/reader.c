/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks, options, IP and UDP headers. */
#include "reader.h"
#include "tests/asserts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SECTION = 0x0a0d0d0a,
	INTERFACE = 1,
	STATISTICS = 5,
	PACKET = 6
};

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

static uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, 2);
	return v;
}

static uint16_t net16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* The next option; false at the end, which must be present. */
static bool next_option(const uint8_t **at, const uint8_t *end, unsigned *code,
			const uint8_t **value, unsigned *size)
{
	ck_assert_msg(*at + 4 <= end, "missing end of options");
	*code = get16(*at);
	*size = get16(*at + 2);
	*value = *at + 4;
	*at += 4 + (*size + 3) / 4 * 4;
	ck_assert(*at <= end);
	if (*code)
		return true;
	ck_assert_uint_eq(*size, 0);
	ck_assert_msg(*at == end, "data after the end of options");
	return false;
}

static uint32_t sum(uint32_t s, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

static void take_headers(struct reader_packet *p, const uint8_t *at, uint32_t captured,
			 uint32_t original)
{
	uint32_t head, pseudo;
	const uint8_t *udp;

	p->six = at[0] >> 4 == 6;
	head = p->six ? 48 : 28;
	ck_assert_uint_ge(captured, head);
	p->data = at + head;
	p->kept = captured - head;
	p->length = original - head;
	ck_assert_uint_le(p->kept, p->length);
	udp = at + head - 8;
	if (p->six) {
		ck_assert_uint_eq(net16(at + 4), 8 + p->length);
		ck_assert_uint_eq(at[6], 17);
		memcpy(p->source, at + 8, 16);
		memcpy(p->target, at + 24, 16);
		pseudo = sum(17 + 8 + p->length, at + 8, 32);
	} else {
		ck_assert_uint_eq(at[0], 0x45);
		ck_assert_uint_eq(net16(at + 2), original);
		ck_assert_uint_eq(at[9], 17);
		ck_assert_uint_eq(sum(0, at, 20), 0xffff);
		memcpy(p->source, at + 12, 4);
		memcpy(p->target, at + 16, 4);
		pseudo = sum(17 + 8 + p->length, at + 12, 8);
	}
	p->from = net16(udp);
	p->to = net16(udp + 2);
	ck_assert_uint_eq(net16(udp + 4), 8 + p->length);
	if (p->kept == p->length)
		ck_assert_uint_eq(sum(pseudo, udp, 8 + p->length), 0xffff);
	else
		ck_assert((net16(udp + 6) != 0) == p->six);
}

static void take_packet(struct reader *r, const uint8_t *at, const uint8_t *end)
{
	struct reader_packet *p;
	unsigned code, size, flags = 0;
	const uint8_t *value;

	if (r->count == r->room) {
		r->room = r->room ? r->room * 2 : 64;
		r->packet = realloc(r->packet, r->room * sizeof(*r->packet));
		ck_assert_ptr_nonnull(r->packet);
	}
	p = &r->packet[r->count++];
	memset(p, 0, sizeof(*p));
	ck_assert_uint_eq(get32(at), 0);
	p->at = (uint64_t)get32(at + 4) << 32 | get32(at + 8);
	take_headers(p, at + 20, get32(at + 12), get32(at + 16));
	at += 20 + (get32(at + 12) + 3) / 4 * 4;
	ck_assert(at <= end);
	while (next_option(&at, end, &code, &value, &size)) {
		if (code == 2) {
			ck_assert_uint_eq(size, 4);
			flags = get32(value);
		} else if (code == 1) {
			ck_assert_uint_lt(p->comments, READER_COMMENTS);
			ck_assert_uint_lt(size, sizeof(p->comment[0]));
			memcpy(p->comment[p->comments++], value, size);
		} else {
			ck_abort_msg("packet: option %u", code);
		}
	}
	ck_assert(flags == 1 || flags == 2);
	p->sent = flags == 2;
}

static void take_statistics(struct reader *r, const uint8_t *at, const uint8_t *end)
{
	unsigned code, size;
	const uint8_t *value;
	uint64_t v;

	at += 12;
	while (next_option(&at, end, &code, &value, &size)) {
		if (code != 4 && code != 5)
			continue;
		ck_assert_uint_eq(size, 8);
		memcpy(&v, value, 8);
		*(code == 4 ? &r->received : &r->dropped) += v;
	}
}

static void take_interface(const uint8_t *at, const uint8_t *end)
{
	unsigned code, size, found = 0;
	const uint8_t *value;

	ck_assert_uint_eq(get16(at), 101);
	at += 8;
	while (next_option(&at, end, &code, &value, &size)) {
		if (code != 9)
			continue;
		ck_assert_uint_eq(size, 1);
		ck_assert_uint_eq(value[0], 9);
		found++;
	}
	ck_assert_uint_eq(found, 1);
}

static void read_all(struct reader *r, const char *path)
{
	FILE *f = fopen(path, "rb");

	ck_assert_msg(f != NULL, "%s", path);
	for (;;) {
		size_t n;

		r->bytes = realloc(r->bytes, r->size + 65536);
		ck_assert_ptr_nonnull(r->bytes);
		n = fread(r->bytes + r->size, 1, 65536, f);
		r->size += n;
		if (!n)
			break;
	}
	fclose(f);
}

void reader_open(struct reader *r, const char *path)
{
	unsigned interfaces = 0;
	uint32_t size;

	memset(r, 0, sizeof(*r));
	read_all(r, path);
	for (size_t i = 0; i < r->size; i += size) {
		const uint8_t *block = r->bytes + i, *body = block + 8;
		uint32_t type = get32(block);

		ck_assert_uint_ge(r->size - i, 12);
		size = get32(block + 4);
		ck_assert_uint_ge(size, 12);
		ck_assert_uint_eq(size % 4, 0);
		ck_assert_uint_le(size, r->size - i);
		ck_assert_uint_eq(get32(block + size - 4), size);
		ck_assert(i || type == SECTION);
		if (type == SECTION) {
			ck_assert_uint_eq(get32(body), 0x1a2b3c4d);
			ck_assert_uint_eq(get16(body + 4), 1);
			r->sections++;
			interfaces = 0;
			continue;
		}
		if (type == INTERFACE) {
			take_interface(body, block + size - 4);
			interfaces++;
			continue;
		}
		ck_assert_uint_eq(interfaces, 1);
		if (type == PACKET)
			take_packet(r, body, block + size - 4);
		else if (type == STATISTICS)
			take_statistics(r, body, block + size - 4);
		else
			ck_abort_msg("block of type %u", type);
	}
	ck_assert_uint_ge(r->sections, 1);
}

void reader_free(struct reader *r)
{
	free(r->packet);
	free(r->bytes);
	memset(r, 0, sizeof(*r));
}

unsigned reader_comments(const struct reader *r, const char *text)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->count; i++)
		for (unsigned k = 0; k < r->packet[i].comments; k++)
			n += strstr(r->packet[i].comment[k], text) != NULL;
	return n;
}
