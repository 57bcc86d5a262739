/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between TUN devices and the emulated link. The kernel may hand over one large packet for many of a
 * flow. Each of these passes the link alone; those that leave it side by side are handed over as one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "packet.h"
#include "wire.h"
#include "spoil.h"

#define TURN 64 /* packets of a device that are read before others get their turn */

/* One read from the device: a packet, or several in one. Its packets in the link own it. */
struct frame {
	uint32_t refs;
	struct packet_view view;
	struct packet_large large;
	uint32_t parts;
	bool partial; /* the checksum of UDP or TCP is that of the pseudo header */
	uint8_t type; /* VIRTIO_NET_HDR_GSO_… */
	uint8_t bytes[];
};

/* Consecutive parts of a frame that leave together. */
struct run {
	struct frame *frame;
	uint32_t first, count;
	bool ce;
	uint64_t spoil;
};

struct raw {
	struct virtio_net_hdr header;
	uint8_t bytes[PACKET_MOST];
} __attribute__((packed));

static void unref(struct frame *f, uint32_t count)
{
	f->refs -= count;
	if (f->refs == 0)
		free(f);
}

static void on_drop(void *arg, const struct link_packet *p)
{
	(void)arg;
	unref(p->data, 1);
}

static void on_copy(void *arg, const struct link_packet *p)
{
	(void)arg;
	((struct frame *)p->data)->refs++;
}

bool wire_start(struct wire *w, char *why, size_t why_size)
{
	const struct link_profile *p = &w->profile;
	struct link_owner owner = {on_drop, on_copy, NULL};

	for (unsigned i = 0; i < 2; i++)
		w->way[i] = link_way_new(&p->way[i].way, p->seed * 2 + i, &owner);
	if (p->nat_count != 0)
		w->nat = link_nat_new();
	if (w->way[0] == NULL || w->way[1] == NULL || (p->nat_count != 0 && w->nat == NULL)) {
		snprintf(why, why_size, "%s", strerror(ENOMEM));
		return false;
	}
	for (unsigned i = 0; i < p->nat_count; i++) {
		if (!link_nat_add(w->nat, p->nat[i])) {
			snprintf(why, why_size, "nat: not an address: %s", p->nat[i]);
			return false;
		}
	}
	return true;
}

void wire_stop(struct wire *w)
{
	for (unsigned i = 0; i < 2; i++)
		link_way_free(w->way[i]);
	link_nat_free(w->nat);
}

/* --- from the devices into the link --- */

static struct frame *frame_new(const uint8_t *bytes, uint32_t length)
{
	struct frame *f = calloc(1, sizeof(*f) + length);

	if (f == NULL)
		return NULL;
	memcpy(f->bytes, bytes, length);
	f->view = packet_view(bytes, length);
	f->large = (struct packet_large){f->bytes, length, length, 1};
	f->parts = 1;
	return f;
}

static void enter(struct wire *w, unsigned direction, struct frame *f, uint64_t now)
{
	uint32_t parts = f->parts;

	/* The last drop would free it. */
	f->refs = parts + 1;
	for (uint32_t i = 0; i < parts; i++) {
		struct link_packet p = {.data = f, .part = i, .ect = f->view.ecn != 0};

		p.length = packet_part_length(&f->large, i);
		link_way_enter(w->way[direction], &p, now);
	}
	unref(f, 1);
}

/* One part of a frame as a packet of its own, with its checksum. Returns its length. */
static uint32_t extract(const struct frame *f, uint32_t part, uint8_t *out)
{
	uint32_t payload, bytes, length;

	if (f->parts == 1) {
		length = f->large.length;
		memcpy(out, f->bytes, length);
	} else {
		bytes = packet_part_headers(&f->large, &f->view, part, 1, out, &payload);
		memcpy(out + f->large.headers, f->bytes + payload, bytes);
		length = f->large.headers + bytes;
	}
	if (f->partial)
		packet_set_sum(out, &f->view, length, false);
	return length;
}

struct cutting {
	struct wire *wire;
	unsigned direction;
	uint64_t now;
};

static void on_fragment(void *arg, const uint8_t *fragment, uint32_t length)
{
	struct cutting *c = arg;
	struct frame *f = frame_new(fragment, length);

	c->wire->n.cut++;
	if (f != NULL)
		enter(c->wire, c->direction, f, c->now);
}

/* A frame that exceeds the MTU of the path. Frees it. */
static void too_long(struct wire *w, unsigned direction, struct frame *f, uint64_t now)
{
	static uint8_t packet[PACKET_MOST], report[PACKET_REPORT_MOST];
	const struct link_direction *d = &w->profile.way[direction];
	struct cutting c = {w, direction, now};
	uint32_t length = 0;

	for (uint32_t i = 0; f->view.may_cut && i < f->parts; i++) {
		length = extract(f, i, packet);
		packet_cut(packet, length, (uint32_t)d->mtu, on_fragment, &c);
	}
	if (!f->view.may_cut) {
		w->n.too_long += f->parts;
		length = extract(f, 0, packet);
		length = d->icmp ? packet_report(packet, length, (uint32_t)d->mtu, report) : 0;
		if (length != 0) {
			struct frame *r = frame_new(report, length);

			w->n.reported++;
			if (r != NULL)
				enter(w, !direction, r, now);
		}
	}
	free(f);
}

static struct frame *frame_of(const struct raw *raw, uint32_t length)
{
	struct virtio_net_hdr h = raw->header;
	struct frame *f = frame_new(raw->bytes, length);

	if (f == NULL)
		return NULL;
	f->partial = (h.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) != 0 && f->view.inner != 0;
	f->type = h.gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
	if (f->type != VIRTIO_NET_HDR_GSO_NONE && f->view.inner != 0 && h.gso_size != 0) {
		f->large.headers = f->view.header + f->view.inner;
		f->large.segment = h.gso_size;
		f->parts = packet_parts(&f->large);
	}
	return f;
}

/* Changes the ECN bits. False: the frame is lost because of them. */
static bool change_ecn(struct frame *f, uint64_t how)
{
	unsigned bits = f->view.ecn;

	if (bits == 0 || how == LINK_ECN_KEPT)
		return true;
	if (how == LINK_ECN_LOST)
		return false;
	if (how == LINK_ECN_CLEARED)
		bits = 0;
	else if (how == LINK_ECN_CE)
		bits = 3;
	else if (bits == 2)
		bits = 1;
	packet_set_ecn(f->bytes, &f->view, bits);
	f->view.ecn = (uint8_t)bits;
	return true;
}

static void take(struct wire *w, unsigned side, const struct raw *raw, uint32_t length,
		 uint64_t now)
{
	unsigned direction = side == 0 ? LINK_UP : LINK_DOWN;
	const struct link_direction *d = &w->profile.way[direction];
	struct frame *f;

	if (d->mute && packet_is_report(raw->bytes, length)) {
		w->n.muted++;
		return;
	}
	f = frame_of(raw, length);
	if (f == NULL) {
		w->n.refused++;
	} else if (!change_ecn(f, d->ecn_bits)) {
		w->n.ecn_lost += f->parts;
		free(f);
	} else if (d->mtu != 0 && packet_part_length(&f->large, 0) > d->mtu) {
		too_long(w, direction, f, now);
	} else if (w->nat != NULL && direction == LINK_UP &&
		   !link_nat_out(w->nat, f->bytes, length, f->partial)) {
		free(f);
	} else {
		enter(w, direction, f, now);
	}
}

bool wire_take(struct wire *w, unsigned side, uint64_t now)
{
	static struct raw raw;

	for (unsigned i = 0; i < TURN; i++) {
		ssize_t n = read(w->device[side].fd, &raw, sizeof(raw));

		if (n < (ssize_t)sizeof(raw.header))
			return false;
		w->n.read++;
		take(w, side, &raw, (uint32_t)n - (uint32_t)sizeof(raw.header), now);
	}
	return true;
}

/* --- from the link to the devices --- */

static uint32_t assemble(const struct run *r, struct raw *raw)
{
	const struct frame *f = r->frame;
	uint32_t length = f->large.length, payload, bytes;

	memset(&raw->header, 0, sizeof(raw->header));
	if (r->count == f->parts) {
		memcpy(raw->bytes, f->bytes, length);
	} else {
		bytes = packet_part_headers(&f->large, &f->view, r->first, r->count, raw->bytes,
					    &payload);
		memcpy(raw->bytes + f->large.headers, f->bytes + payload, bytes);
		length = f->large.headers + bytes;
		packet_set_sum(raw->bytes, &f->view, length, true);
	}
	if (f->partial) {
		raw->header.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		raw->header.csum_start = (uint16_t)f->view.header;
		raw->header.csum_offset = (uint16_t)(f->view.sum - f->view.header);
	}
	if (r->count > 1) {
		raw->header.gso_type = f->type;
		raw->header.gso_size = (uint16_t)f->large.segment;
		raw->header.hdr_len = (uint16_t)f->large.headers;
	}
	if (r->ce)
		packet_mark(raw->bytes, &f->view);
	return length;
}

static void hand_over(struct wire *w, unsigned direction, struct run *r)
{
	static struct raw raw;
	const struct link_profile *p = &w->profile;
	uint32_t length;
	bool passes = true;

	if (r->count == 0)
		return;
	length = assemble(r, &raw);
	if (r->spoil != 0)
		spoil(raw.bytes, length, r->spoil, p->fix_checksum, (uint32_t)p->behind);
	if (w->nat != NULL && direction == LINK_DOWN)
		passes = link_nat_in(w->nat, raw.bytes, length, r->frame->partial);
	if (passes) {
		/* A device that is down, for example, refuses packets. */
		if (write(w->device[!direction].fd, &raw, sizeof(raw.header) + length) < 0)
			w->n.refused += r->count;
		else
			w->n.written++;
	}
	unref(r->frame, r->count);
	r->count = 0;
}

static void deliver(struct wire *w, unsigned direction, uint64_t now)
{
	struct run r = {0};
	struct link_packet p;

	while (link_way_leave(w->way[direction], &p, now)) {
		uint64_t late = now - p.at;
		bool next = r.count != 0 && p.data == r.frame && p.part == r.first + r.count &&
			    p.ce == r.ce && p.spoil == 0;

		if (!next) {
			hand_over(w, direction, &r);
			r = (struct run){p.data, p.part, 0, p.ce, p.spoil};
		}
		r.count++;
		w->n.late += late > WIRE_LATE;
		if (late > w->n.late_most)
			w->n.late_most = late;
	}
	hand_over(w, direction, &r);
}

void wire_deliver(struct wire *w, uint64_t now)
{
	/* The device of side b takes what comes from a. */
	deliver(w, LINK_UP, now);
	deliver(w, LINK_DOWN, now);
}

uint64_t wire_next(const struct wire *w)
{
	uint64_t up = link_way_next(w->way[LINK_UP]), down = link_way_next(w->way[LINK_DOWN]);

	return up < down ? up : down;
}

void wire_change(struct wire *w, uint64_t now)
{
	link_profile_finish(&w->profile);
	for (unsigned i = 0; i < 2; i++)
		link_way_change(w->way[i], &w->profile.way[i].way, now);
}

void wire_calm(struct wire *w, uint64_t now)
{
	for (unsigned i = 0; i < 2; i++) {
		memset(&w->profile.way[i], 0, sizeof(w->profile.way[i]));
		w->profile.way[i].icmp = 1;
	}
	wire_change(w, now);
}

/* --- counters --- */

void wire_print_json(const struct wire *w, FILE *to)
{
	static const char *const names[] = {"up", "down"};

	fprintf(to, "{");
	for (unsigned i = 0; i < 2; i++) {
		const struct link_counters *c = link_way_counters(w->way[i]);

		fprintf(to,
			"\"%s\": {\"entered\": %" PRIu64 ", \"entered_bytes\": %" PRIu64
			", \"left\": %" PRIu64 ", \"left_bytes\": %" PRIu64 ", \"lost\": %" PRIu64
			", \"overflowed\": %" PRIu64 ", \"dropped\": %" PRIu64
			", \"marked\": %" PRIu64 ", \"reordered\": %" PRIu64
			", \"duplicated\": %" PRIu64 ", \"corrupted\": %" PRIu64
			", \"queue_most\": %" PRIu64 ", \"device_dropped\": %" PRIu64 "}, ",
			names[i], c->entered, c->entered_bytes, c->left, c->left_bytes, c->lost,
			c->overflowed, c->dropped, c->marked, c->reordered, c->duplicated,
			c->corrupted, c->queue_most, device_dropped(&w->device[i]));
	}
	if (w->nat != NULL) {
		const struct link_nat_counters *c = link_nat_counters(w->nat);

		fprintf(to,
			"\"nat\": {\"mappings\": %" PRIu64 ", \"rebindings\": %" PRIu64
			", \"refused\": %" PRIu64 "}, ",
			c->mappings, c->rebindings, c->refused);
	}
	fprintf(to,
		"\"muted\": %" PRIu64 ", \"ecn_lost\": %" PRIu64 ", \"reported\": %" PRIu64
		", \"too_long\": %" PRIu64 ", \"cut\": %" PRIu64 ", \"refused\": %" PRIu64
		", \"read\": %" PRIu64 ", \"written\": %" PRIu64 ", \"late\": %" PRIu64
		", \"late_most_us\": %" PRIu64 "}\n",
		w->n.muted, w->n.ecn_lost, w->n.reported, w->n.too_long, w->n.cut, w->n.refused,
		w->n.read, w->n.written, w->n.late, w->n.late_most / 1000);
}

void wire_print_words(const struct wire *w, FILE *to)
{
	const struct link_counters *a = link_way_counters(w->way[0]),
				   *b = link_way_counters(w->way[1]);

	fprintf(to,
		"forwarded %" PRIu64 " lost %" PRIu64 " reordered %" PRIu64 " duplicated %" PRIu64
		" corrupted %" PRIu64 " muted %" PRIu64 " overflowed %" PRIu64 " dropped %" PRIu64
		" marked %" PRIu64 " reported %" PRIu64 " cut %" PRIu64 "\n",
		a->left + b->left, a->lost + b->lost, a->reordered + b->reordered,
		a->duplicated + b->duplicated, a->corrupted + b->corrupted, w->n.muted,
		a->overflowed + b->overflowed, a->dropped + b->dropped, a->marked + b->marked,
		w->n.reported, w->n.cut);
}
