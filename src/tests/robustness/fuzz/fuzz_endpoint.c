/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: datagrams into a fresh endpoint. The input is a byte of setup, then datagrams:
 * source and time, length in two bytes, bytes. For all input: output is well formed, an unvalidated
 * address gets at most three bytes per byte sent, and all resources are released.
 */

#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "base/rtt.h"
#include "base/wire.h"
#include "world.h"

const char fuzz_name[] = "endpoint";
const size_t fuzz_max = 3000;
const unsigned fuzz_cost = 100;

#define US	 0x0a000001u
#define PORT	 7000
#define SOURCES	 4
#define IP_BYTES 28u /* headers of IP and UDP, which the limit includes */

/* Sources: another host, the same with another port, a third one, and this host. */
static const struct {
	uint32_t host;
	uint16_t port;
} sources[SOURCES] = {{0x0a000002, 7001}, {0x0a000002, 7002}, {0x0a000003, 7001}, {US, 7003}};

static struct rxw_endpoint *endpoint;
static uint64_t bytes_in[SOURCES], bytes_out[SOURCES];
static bool open_to_all; /* DEBUG answers exceed their requests: for friends only */

static unsigned source_of(const struct rxw_addr *a)
{
	unsigned i = 0;

	while (i < SOURCES) {
		struct rxw_addr s = world_addr(sources[i].host, sources[i].port);

		if (rxw_addr_equal(&s, a))
			break;
		i++;
	}
	FUZZ_CHECK(i < SOURCES); /* no other host gets an answer */
	return i;
}

static void look(struct world *w, const struct packet *p)
{
	unsigned i = source_of(&p->to);

	(void)w;
	bytes_out[i] += p->length + IP_BYTES;
	if (sources[i].host == US || open_to_all || world_validated(endpoint, &p->to))
		bytes_in[i] = UINT64_MAX / 8; /* it has no limit */
	FUZZ_CHECK(bytes_out[i] <= 3 * bytes_in[i]);
}

/* Reads the available data and answers with the same amount, three times. */
static int32_t serve(rxw_call *call, void *context)
{
	uint8_t data[600];
	ssize_t n = rxw_call_read_some(call, data, sizeof(data));

	(void)context;
	if (n < 0)
		return RXW_CALL_EOF;
	for (unsigned i = 0; i < 3 && n > 0; i++)
		if (rxw_call_write(call, data, (size_t)n) < 0)
			break;
	return n && data[0] == 0xff ? data[n - 1] : 0;
}

static void add_service(uint16_t id, unsigned flags)
{
	struct rxw_service_options o = {
		.size = sizeof(o), .id = id, .name = "fuzz", .handler = serve, .flags = flags};

	FUZZ_CHECK(!rxw_service_add(endpoint, &o, NULL));
}

static void set_up(struct world *w, uint8_t how)
{
	struct rxw_config config;

	rxw_config_init(&config, sizeof(config));
	config.memory = how & 1 ? 2u << 20 : 16u << 20;
	config.debug_access = how & 8 ? RXW_DEBUG_ANY : RXW_DEBUG_LOCAL;
	config.jumbo = how & 16 ? RXW_ON : RXW_OFF;
	config.path_mtu = how & 32 ? RXW_ON : RXW_OFF;
	config.window = how & 64 ? 4 : 255;
	open_to_all = how & 8;
	memset(bytes_in, 0, sizeof(bytes_in));
	memset(bytes_out, 0, sizeof(bytes_out));
	world_begin(w, &config);
	w->constants.batch = how & 2 ? 1 : 8;
	w->constants.unvalidated_max = how & 4 ? 2 : 32;
	w->look = look;
	endpoint = world_endpoint(w, US, PORT, true);
	add_service(147, RXW_SERVICE_INLINE);
	add_service(1, RXW_SERVICE_INLINE | RXW_SERVICE_REACH);
	add_service(4, 0); /* has no thread to run on */
}

static void receive(uint8_t how, const uint8_t *bytes, uint32_t size)
{
	struct rxw_addr from = world_addr(sources[how & 3].host, sources[how & 3].port);
	struct rxw_addr to = world_addr(US, PORT);
	uint32_t segment = how & 4 ? (size + 1) / 2 : 0;

	/* A burst of two is two datagrams on the wire. */
	bytes_in[how & 3] += size + IP_BYTES * (segment && segment < size ? 2 : 1);
	world_deliver(&from, &to, bytes, size, segment);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t spans[] = {
		0,	     RXW_MS / 10,  10 * RXW_MS,	 60 * RXW_MS, 500 * RXW_MS,
		2 * RXW_SEC, 20 * RXW_SEC, 400 * RXW_SEC};
	const uint8_t *end = data + size;
	struct world w;

	if (!size)
		return 0;
	set_up(&w, *data++);
	for (unsigned n = 0; n < 100 && end - data > 3; n++) {
		uint8_t how = *data++;
		uint32_t length = rxw_get16(data);

		data += 2;
		if (length > (size_t)(end - data))
			length = (uint32_t)(end - data);
		receive(how, data, length);
		data += length;
		if (how & 0x80)
			continue; /* more of the same batch */
		world_poll(endpoint);
		world_pass(spans[how >> 3 & 7]);
		world_poll(endpoint);
	}
	for (unsigned i = 0; i < 3; i++) {
		world_poll(endpoint);
		world_pass(20 * RXW_SEC);
	}
	world_destroy(&w, endpoint);
	world_end(&w);
	return 0;
}
