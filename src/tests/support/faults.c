/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/support/faults.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	int error;
} errors[] = {
	{"EIO", EIO},
	{"EINVAL", EINVAL},
	{"EMSGSIZE", EMSGSIZE},
	{"ENOBUFS", ENOBUFS},
	{"ENOMEM", ENOMEM},
	{"EAGAIN", EAGAIN},
	{"EPERM", EPERM},
	{"EACCES", EACCES},
	{"EOPNOTSUPP", EOPNOTSUPP},
	{"ENOPROTOOPT", ENOPROTOOPT},
	{"ECONNREFUSED", ECONNREFUSED},
	{"EHOSTUNREACH", EHOSTUNREACH},
	{"ENETUNREACH", ENETUNREACH},
	{"EINTR", EINTR},
	{"ENOSYS", ENOSYS},
};

static const char *const kinds[RXW_IO_FAULT_KINDS] = {
	[RXW_IO_FAULT_GSO] = "gso",
	[RXW_IO_FAULT_SEND] = "send",
	[RXW_IO_FAULT_GRO] = "gro",
	[RXW_IO_FAULT_STEER] = "steer",
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
	if (i == sizeof(errors) / sizeof(errors[0]) || !isdigit((unsigned char)*text))
		return NULL;
	f->error = errors[i].error;
	f->at = strtoull(text, &end, 10);
	f->onward = *end == '+';
	if (f->onward)
		end++;
	return end;
}

bool test_faults_parse(struct rxw_io_faults *faults, const char *text)
{
	faults->count = 0;
	while (text && *text) {
		if (faults->count == sizeof(faults->fault) / sizeof(faults->fault[0]))
			return false;
		text = parse_fault(&faults->fault[faults->count], text);
		if (!text || (*text != ',' && *text != '\0'))
			return false;
		faults->count++;
		if (*text == ',')
			text++;
	}
	return true;
}
