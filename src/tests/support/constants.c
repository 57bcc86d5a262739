/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/support/constants.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	size_t offset;
} numbers[] = {
#define NUMBER(name, member) {name, offsetof(struct rxw_constants, member)}
	NUMBER("batch", batch),
	NUMBER("spin-us", spin_us),
	NUMBER("coalesce-us", coalesce_us),
	NUMBER("refusal-us", refusal_us),
	NUMBER("sendq-packets", sendq_packets),
	NUMBER("abort-rate", abort_rate),
	NUMBER("answer-rate", answer_rate),
	NUMBER("unvalidated-max", unvalidated_max),
	NUMBER("reserved-peers", reserved_peers),
	NUMBER("queue-burst-ms", queue_burst_ms),
	NUMBER("waiters-max", waiters_max),
	NUMBER("inline-us", inline_us),
#undef NUMBER
};

void test_constants_init(struct test_constants *constants)
{
	memset(constants, 0, sizeof(*constants));
	constants->set = rxw_constants;
}

/* In names "_" and "-" are equivalent. */
static bool same(const char *a, const char *b)
{
	for (; *a && (*a == *b || (*a == '_' && *b == '-')); a++)
		b++;
	return !*a && !*b;
}

static bool set_steer(struct rxw_constants *c, const char *value)
{
	static const char *const words[] = {"cid", "hash", "wrong"};

	for (c->steer = 0; c->steer < 3; c->steer++)
		if (!strcmp(value, words[c->steer]))
			return true;
	return false;
}

bool test_constants_set(struct test_constants *constants, const char *name, const char *value)
{
	struct rxw_constants *c = &constants->set;
	char *end;
	unsigned long number = strtoul(value, &end, 10);

	if (same(name, "inject")) {
		c->faults = &constants->faults;
		return test_faults_parse(&constants->faults, value);
	}
	if (same(name, "steer"))
		return set_steer(c, value);
	if (end == value || *end)
		return false;
	if (same(name, "call-memory")) {
		c->call_memory = number;
		return true;
	}
	if (same(name, "writer-receives")) {
		c->writer_receives = number;
		return true;
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (!same(name, numbers[i].name))
			continue;
		*(unsigned *)((char *)c + numbers[i].offset) = (unsigned)number;
		return true;
	}
	return false;
}
