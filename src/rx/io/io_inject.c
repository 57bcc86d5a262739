/* SPDX-License-Identifier: BSD-2-Clause */
/* Fault injection for tests: which send or set-up step fails, and how. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "io/io_sock.h"

static const struct {
	const char *name;
	int error;
} errors[] = {
	{ "EIO", EIO },                   { "EINVAL", EINVAL },
	{ "EMSGSIZE", EMSGSIZE },         { "ENOBUFS", ENOBUFS },
	{ "ENOMEM", ENOMEM },             { "EAGAIN", EAGAIN },
	{ "EPERM", EPERM },               { "EACCES", EACCES },
	{ "EOPNOTSUPP", EOPNOTSUPP },     { "ENOPROTOOPT", ENOPROTOOPT },
	{ "ECONNREFUSED", ECONNREFUSED }, { "EHOSTUNREACH", EHOSTUNREACH },
	{ "ENETUNREACH", ENETUNREACH },   { "EINTR", EINTR },
	{ "ENOSYS", ENOSYS },
};

static const char *const kinds[RXW_IO_FAULT_KINDS] = {
	[RXW_IO_FAULT_GSO] = "gso",     [RXW_IO_FAULT_SEND] = "send",
	[RXW_IO_FAULT_GRO] = "gro",     [RXW_IO_FAULT_STEER] = "steer",
	[RXW_IO_FAULT_REUSEPORT] = "reuseport",
};

/* One word up to `stop`; NULL if there is no `stop`. */
static const char *copy_word(const char *text, char stop, char *out, size_t size)
{
	size_t n = strcspn(text, ":@,");

	if (text[n] != stop || n == 0 || n >= size)
		return NULL;
	memcpy(out, text, n);
	out[n] = '\0';
	return text + n + 1;
}

static const char *parse_fault(struct rxw_io_fault *f, const char *text)
{
	char name[24];
	char *end;
	unsigned i;

	if (!(text = copy_word(text, ':', name, sizeof(name))))
		return NULL;
	for (i = 0; i < RXW_IO_FAULT_KINDS && strcmp(name, kinds[i]) != 0; i++)
		;
	if (i == RXW_IO_FAULT_KINDS)
		return NULL;
	f->kind = (enum rxw_io_fault_kind)i;
	if (!(text = copy_word(text, '@', name, sizeof(name))))
		return NULL;
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strcmp(name, errors[i].name) == 0)
			break;
	if (i == sizeof(errors) / sizeof(errors[0]) || !rxw_ascii_is_digit(*text))
		return NULL;
	f->error = errors[i].error;
	f->at = strtoull(text, &end, 10);
	f->onward = *end == '+';
	if (f->onward)
		end++;
	return end;
}

int rxw_io_inject_parse(struct rxw_io_sock *s, const char *text)
{
	s->fault_count = 0;
	while (text && *text) {
		if (s->fault_count == RXW_IO_FAULTS)
			return -EINVAL;
		text = parse_fault(&s->fault[s->fault_count], text);
		if (!text || (*text != ',' && *text != '\0'))
			return -EINVAL;
		s->fault_count++;
		if (*text == ',')
			text++;
	}
	return 0;
}

int rxw_io_inject_peek(const struct rxw_io_sock *s, enum rxw_io_fault_kind kind, uint64_t ahead)
{
	uint64_t number;

	if (!s->fault_count)
		return 0;
	number = atomic_load_explicit(&s->fault_seen[kind], memory_order_relaxed) + ahead + 1;
	for (unsigned i = 0; i < s->fault_count; i++) {
		const struct rxw_io_fault *f = &s->fault[i];

		if (f->kind == kind && f->at && (number == f->at || (f->onward && number > f->at)))
			return f->error;
	}
	return 0;
}

int rxw_io_inject_setup(const struct rxw_io_sock *s, enum rxw_io_fault_kind kind)
{
	for (unsigned i = 0; i < s->fault_count; i++)
		if (s->fault[i].kind == kind && s->fault[i].at == 0)
			return s->fault[i].error;
	return 0;
}
