/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of emulated links by name, and files of them. */
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"

/* Units of a setting. */
enum unit {
	RATE,
	TIME,
	SHARE,
	NUMBER, /* may have a fraction */
	COUNT,	/* bytes, packets */
	SWITCH, /* yes, no */
	DISCIPLINE,
	SHAPE,
	ECN_BITS,
	QUEUE,
	TEXT,
	ADDRESSES,
	CHANGE
};

struct setting {
	const char *name;
	enum unit unit;
	size_t at;
	bool directed; /* in struct link_direction, else in the profile */
};

#define WAY(name, unit, member)                                           \
	{                                                                 \
		name, unit, offsetof(struct link_direction, member), true \
	}
#define WHOLE(name, unit, member)                                        \
	{                                                                \
		name, unit, offsetof(struct link_profile, member), false \
	}

static const struct setting settings[] = {
	WAY("rate", RATE, way.rate),
	WAY("queue", QUEUE, way.queue_bytes),
	WAY("discipline", DISCIPLINE, way.discipline),
	WAY("target", TIME, way.target),
	WAY("interval", TIME, way.interval),
	WAY("step", TIME, way.step),
	WAY("ecn", SWITCH, way.ecn),
	WAY("delay", TIME, way.delay),
	WAY("jitter", TIME, way.jitter),
	WAY("jitter-shape", SHAPE, way.jitter_shape),
	WAY("reorder", SHARE, way.reorder),
	WAY("reorder-by", TIME, way.reorder_by),
	WAY("duplicate", SHARE, way.duplicate),
	WAY("loss", SHARE, way.loss),
	WAY("burst", NUMBER, way.burst),
	WAY("burst-limit", TIME, way.burst_limit),
	WAY("bad-enter", SHARE, way.bad_enter),
	WAY("bad-leave", SHARE, way.bad_leave),
	WAY("bad-loss", SHARE, way.bad_loss),
	WAY("corrupt", SHARE, way.corrupt),
	WAY("hole", SWITCH, way.hole),
	WAY("mtu", COUNT, mtu),
	WAY("icmp", SWITCH, icmp),
	WAY("mute", SWITCH, mute),
	WAY("ecn-bits", ECN_BITS, ecn_bits),
	WHOLE("about", TEXT, about),
	WHOLE("device-mtu", COUNT, device_mtu),
	WHOLE("offload", SWITCH, offload),
	WHOLE("seed", COUNT, seed),
	WHOLE("behind", COUNT, behind),
	WHOLE("fix-checksum", SWITCH, fix_checksum),
	WHOLE("grain", TIME, grain),
	WHOLE("rebind", TIME, rebind),
	WHOLE("nat", ADDRESSES, nat),
	WHOLE("at", CHANGE, change),
};

struct scale {
	const char *name;
	double factor;
};

static const struct scale rates[] = {
	{"bit", 1}, {"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {NULL, 0}};
static const struct scale times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
static const struct scale shares[] = {{"%", 0.01}, {"", 1}, {NULL, 0}};
static const struct scale numbers[] = {{"", 1}, {NULL, 0}};
static const struct scale bytes[] = {{"B", 1},	    {"KB", 1e3},      {"MB", 1e6},
				     {"KiB", 1024}, {"MiB", 1 << 20}, {NULL, 0}};
static const struct scale bdp[] = {{"bdp", 1}, {NULL, 0}};
static const struct scale packets[] = {{"packets", 1}, {NULL, 0}};

void link_profile_init(struct link_profile *p)
{
	memset(p, 0, sizeof(*p));
	p->device_mtu = 1500;
	p->offload = 1;
	p->seed = 1;
	p->grain = 50000;
	for (unsigned i = 0; i < 2; i++) {
		struct link_direction *d = &p->way[i];

		d->way.target = 5000000;
		d->way.interval = 100000000;
		d->way.step = 5000000;
		d->way.reorder_by = 2500000;
		d->way.burst_limit = 200000000;
		d->way.queue_packets = 1000;
		d->icmp = 1;
	}
}

/* A number with one of these units. */
static bool scaled(const char *text, const struct scale *units, double *value)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || !(number >= 0 && number < 1e18))
		return false;
	while (*end == ' ')
		end++;
	for (; units->name != NULL; units++) {
		if (strcmp(end, units->name) == 0) {
			*value = number * units->factor;
			return *value < 1e18;
		}
	}
	return false;
}

static bool put(const char *text, const struct scale *units, void *to)
{
	double value;

	if (!scaled(text, units, &value))
		return false;
	*(uint64_t *)to = (uint64_t)(value + 0.5);
	return true;
}

/* One of these words, as its index. */
static bool word(const char *text, const char *const *words, void *to)
{
	for (unsigned i = 0; words[i] != NULL; i++) {
		if (strcmp(text, words[i]) == 0) {
			*(uint64_t *)to = i;
			return true;
		}
	}
	return false;
}

static bool put_queue(struct link_direction *d, const char *text)
{
	uint64_t of_packets = 0, of_bytes = 0, of_time = 0;
	double share = 0;

	if (!put(text, packets, &of_packets) && !put(text, bytes, &of_bytes) &&
	    !put(text, times, &of_time) && !scaled(text, bdp, &share))
		return false;
	d->way.queue_packets = of_packets;
	d->way.queue_bytes = of_bytes;
	d->queue_time = of_time;
	d->queue_bdp = share;
	return true;
}

/* Zero needs no unit. */
static bool put_or_zero(const char *text, const struct scale *units, void *to)
{
	return put(strcmp(text, "0") == 0 ? "0" : text, strcmp(text, "0") == 0 ? numbers : units,
		   to);
}

static bool put_share(const char *text, double *to)
{
	double value;

	if (!scaled(text, shares, &value) || value > 1)
		return false;
	*to = value;
	return true;
}

static bool put_text(char *to, size_t size, const char *text)
{
	if (strlen(text) >= size)
		return false;
	memcpy(to, text, strlen(text) + 1);
	return true;
}

static bool put_addresses(struct link_profile *p, const char *text)
{
	char copy[LINK_ADDRESSES * sizeof(p->nat[0])], *save = NULL;

	p->nat_count = 0;
	if (!put_text(copy, sizeof(copy), text))
		return false;
	for (char *a = strtok_r(copy, ", ", &save); a != NULL; a = strtok_r(NULL, ", ", &save)) {
		if (p->nat_count == LINK_ADDRESSES ||
		    !put_text(p->nat[p->nat_count], sizeof(p->nat[0]), a))
			return false;
		p->nat_count++;
	}
	return true;
}

/* "2s rate 100Mbit" */
static bool put_change(struct link_profile *p, const char *text)
{
	struct link_change c = {0};
	struct link_profile *trial;
	char at[32], why[8];
	int used = 0;
	bool good;

	if (p->change_count == LINK_CHANGES ||
	    sscanf(text, "%31s %31s %n", at, c.name, &used) < 2 || used == 0 ||
	    !put(at, times, &c.at) || !put_text(c.value, sizeof(c.value), text + used) ||
	    strcmp(c.name, "at") == 0)
		return false;
	if (strcmp(c.name, "rebind-now") != 0) {
		trial = malloc(sizeof(*trial));
		if (trial == NULL)
			return false;
		*trial = *p;
		good = link_profile_set(trial, c.name, c.value, why, sizeof(why));
		free(trial);
		if (!good)
			return false;
	}
	p->change[p->change_count++] = c;
	return true;
}

static bool put_number(const char *text, double *to)
{
	return scaled(text, numbers, to);
}

static bool store(struct link_profile *p, struct link_direction *d, const struct setting *s,
		  const char *text)
{
	static const char *const switches[] = {"no", "yes", NULL};
	static const char *const disciplines[] = {"drop-tail", "codel", "step", NULL};
	static const char *const shapes[] = {"uniform", "walk", NULL};
	static const char *const bits[] = {"kept", "cleared", "ce", "ect1", "lost", NULL};
	void *to = s->directed ? (char *)d + s->at : (char *)p + s->at;

	switch (s->unit) {
	case RATE:
		return put_or_zero(text, rates, to);
	case TIME:
		return put_or_zero(text, times, to);
	case SHARE:
		return put_share(text, to);
	case NUMBER:
		return put_number(text, to);
	case COUNT:
		return put(text, numbers, to);
	case SWITCH:
		return word(text, switches, to);
	case DISCIPLINE:
		return word(text, disciplines, to);
	case SHAPE:
		return word(text, shapes, to);
	case ECN_BITS:
		return word(text, bits, to);
	case QUEUE:
		return put_queue(d, text);
	case TEXT:
		return put_text(to, sizeof(p->about), text);
	case ADDRESSES:
		return put_addresses(p, text);
	default:
		return put_change(p, text);
	}
}

bool link_profile_set(struct link_profile *p, const char *name, const char *value, char *why,
		      size_t why_size)
{
	bool up = strncmp(name, "up-", 3) == 0, down = strncmp(name, "down-", 5) == 0;
	const char *bare = name + (up ? 3 : down ? 5 : 0);

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		const struct setting *s = &settings[i];

		if (strcmp(bare, s->name) != 0 || ((up || down) && !s->directed))
			continue;
		if ((!down && !store(p, &p->way[LINK_UP], s, value)) ||
		    (!up && s->directed && !store(p, &p->way[LINK_DOWN], s, value)) ||
		    (!s->directed && down)) {
			snprintf(why, why_size, "%s: not a value: %s", name, value);
			return false;
		}
		return true;
	}
	snprintf(why, why_size, "%s: no such setting", name);
	return false;
}

/* --- files --- */

struct loading {
	struct link_profile *p;
	const char *section;
	char *why;
	size_t why_size;
	bool found, failed;
};

static int on_setting(void *arg, const char *section, const char *name, const char *value)
{
	struct loading *l = arg;

	if (strcmp(section, l->section) != 0 || l->failed)
		return 1;
	l->found = true;
	l->failed = !link_profile_set(l->p, name, value, l->why, l->why_size);
	return 1;
}

static bool parsed(const char *file,
		   int (*handler)(void *, const char *, const char *, const char *), void *arg,
		   char *why, size_t why_size)
{
	int status = ini_parse(file, handler, arg);

	if (status > 0)
		snprintf(why, why_size, "%s:%d: not a line of a file of profiles", file, status);
	else if (status < 0)
		snprintf(why, why_size, "%s: %s", file, strerror(errno));
	return status == 0;
}

bool link_profile_load(struct link_profile *p, const char *file, const char *name, char *why,
		       size_t why_size)
{
	struct loading l = {p, name, why, why_size, false, false};

	if (!put_text(p->name, sizeof(p->name), name) ||
	    !parsed(file, on_setting, &l, why, why_size) || l.failed)
		return false;
	if (!l.found)
		snprintf(why, why_size, "%s: no profile %s", file, name);
	return l.found;
}

struct listing {
	void (*each)(void *arg, const char *name);
	void *arg;
	char last[64];
};

static int on_name(void *arg, const char *section, const char *name, const char *value)
{
	struct listing *l = arg;

	(void)name;
	(void)value;
	if (strcmp(section, l->last) != 0) {
		snprintf(l->last, sizeof(l->last), "%s", section);
		l->each(l->arg, section);
	}
	return 1;
}

bool link_profile_list(const char *file, void (*each)(void *arg, const char *name), void *arg,
		       char *why, size_t why_size)
{
	struct listing l = {each, arg, ""};

	return parsed(file, on_name, &l, why, why_size);
}

uint64_t link_profile_rtt(const struct link_profile *p)
{
	return p->way[LINK_UP].way.delay + p->way[LINK_DOWN].way.delay;
}

void link_profile_finish(struct link_profile *p)
{
	for (unsigned i = 0; i < 2; i++) {
		struct link_direction *d = &p->way[i];
		double seconds = d->queue_bdp * (double)link_profile_rtt(p) / 1e9;

		if (d->queue_bdp == 0)
			seconds = (double)d->queue_time / 1e9;
		if (seconds > 0 && d->way.rate != 0)
			d->way.queue_bytes = (uint64_t)(seconds * (double)d->way.rate / 8);
		/* It stays that large when rate or delay change. */
		d->queue_bdp = 0;
		d->queue_time = 0;
	}
}
