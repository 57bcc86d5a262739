/* SPDX-License-Identifier: BSD-2-Clause */
/* Destinations for which GSO was refused: a bounded list, each kept for a minute. */
#include <assert.h>
#include <string.h>

#include "common/clock.h"
#include "common/held.h"
#include "io/io_sock.h"

static uint64_t now_ms(void)
{
	return monotonic_ns() / NS_PER_MS;
}

static void drop_expired(struct rxw_io_sock *s, uint64_t now)
{
	unsigned n = atomic_load_explicit(&s->refused_count, memory_order_relaxed);

	assert(mutex_is_held(&s->lock) && n <= RXW_IO_REFUSED);
	for (unsigned i = 0; i < n;) {
		if (s->refused[i].until_ms > now)
			i++;
		else
			s->refused[i] = s->refused[--n];
	}
	atomic_store_explicit(&s->refused_count, n, memory_order_relaxed);
}

bool rxw_io_refused(struct rxw_io_sock *s, const struct rxw_addr *peer)
{
	bool found = false;

	/* The common case costs one load. */
	if (!atomic_load_explicit(&s->refused_count, memory_order_relaxed))
		return false;
	rxw_io_lock(s);
	drop_expired(s, now_ms());
	for (unsigned i = 0; i < atomic_load_explicit(&s->refused_count, memory_order_relaxed); i++)
		if (rxw_addr_same_host(&s->refused[i].host, peer)) {
			found = true;
			break;
		}
	rxw_io_unlock(s);
	return found;
}

void rxw_io_refuse(struct rxw_io_sock *s, const struct rxw_addr *peer, int error)
{
	uint64_t now = now_ms();
	char text[64];
	unsigned n, slot = 0;

	rxw_io_count(&s->stats.gso_fallbacks, 1);
	rxw_io_lock(s);
	drop_expired(s, now);
	n = atomic_load_explicit(&s->refused_count, memory_order_relaxed);
	if (n < RXW_IO_REFUSED) {
		slot = n;
		atomic_store_explicit(&s->refused_count, n + 1, memory_order_relaxed);
	} else {
		/* Full: replace the entry that expires first. */
		for (unsigned i = 1; i < n; i++)
			if (s->refused[i].until_ms < s->refused[slot].until_ms)
				slot = i;
	}
	s->refused[slot].host = *peer;
	s->refused[slot].until_ms = now + RXW_IO_REFUSED_MS;
	rxw_io_unlock(s);
	rxw_io_warn(s, RXW_IO_WARN_GSO_PEER,
		    "GSO to %s was refused (%s) but single datagrams were sent: "
		    "no GSO there for %u s",
		    rxw_addr_text(peer, text, sizeof(text)), strerror(error),
		    RXW_IO_REFUSED_MS / 1000);
}
