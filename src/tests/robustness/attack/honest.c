/* SPDX-License-Identifier: BSD-2-Clause */
/* Honest clients, each with its own socket, that check the bytes of their calls. */
#include "attacker.h"
#include "tests/support/internals.h"

void honest_open(struct honest h[HONEST], struct h_bed *bed)
{
	for (unsigned i = 0; i < HONEST; i++) {
		h[i] = (struct honest){.bed = bed};
		/* Where an attacker uses all of the machine, clients are slow but alive. */
		h[i].endpoint = h_client(bed, "dead-ms=60000");
		ck_assert_int_eq(rxw_connection_create(h[i].endpoint,
						       (struct sockaddr *)&bed->address,
						       bed->address_len, H_SERVICE,
						       bed->security,
						       &h[i].connection), 0);
	}
}

/* h_call() without its assertions: libcheck makes a system call for each one. */
static int32_t call(struct honest *h, const struct h_ask *ask)
{
	uint8_t head[H_ASK_SIZE];
	rxw_call *call;
	int rc = rxw_call_begin(h->connection, NULL, &call);

	if (rc)
		return rc;
	h_encode_ask(head, ask);
	rc = rxw_call_write(call, head, sizeof(head)) == sizeof(head) ? 0 : -H_MISMATCH;
	if (!rc)
		rc = h_put(h->bed, call, ask);
	if (!rc)
		rc = h_get(call, ask->op == H_BOTH ? ask : &(struct h_ask){.bytes = 0});
	return rxw_call_end(call, rc == -H_MISMATCH ? H_MISMATCH : 0, NULL);
}

static void *working(void *arg)
{
	struct honest *h = arg;

	pthread_setname_np(pthread_self(), "honest");

	for (unsigned i = 0; i < h->most && !h->bad && !atomic_load(&h->stop); i++) {
		h->bad = call(h, &(struct h_ask){.op = i % 4 ? H_SINK : H_BOTH,
						 .bytes = i % 4 ? 100 : 20000,
						 .seed = i});
		atomic_fetch_add(&h->calls, !h->bad);
	}
	return NULL;
}

void honest_start(struct honest h[HONEST], unsigned most)
{
	for (unsigned i = 0; i < HONEST; i++) {
		h[i].most = most;
		atomic_store(&h[i].stop, false);
		ck_assert_int_eq(pthread_create(&h[i].thread, NULL, working, &h[i]), 0);
	}
}

void honest_end(struct honest h[HONEST], bool stop)
{
	for (unsigned i = 0; i < HONEST; i++) {
		if (stop)
			atomic_store(&h[i].stop, true);
		pthread_join(h[i].thread, NULL);
		ck_assert_msg(!h[i].bad, "honest client %u: code %d", i, h[i].bad);
	}
}

uint64_t honest_calls(struct honest h[HONEST])
{
	uint64_t n = 0;

	for (unsigned i = 0; i < HONEST; i++)
		n += atomic_load(&h[i].calls);
	return n;
}

void honest_close(struct honest h[HONEST])
{
	for (unsigned i = 0; i < HONEST; i++) {
		rxw_connection_release(h[i].connection);
		ck_assert_int_eq(rxw_endpoint_destroy(h[i].endpoint), 0);
	}
}

int honest_socket(const struct honest h[HONEST])
{
	return internals_socket(h[0].endpoint);
}
