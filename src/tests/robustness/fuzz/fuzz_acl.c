/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzz target: the text of an ACL from a client. An accepted text can be printed and read again. */

#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "fileserver/guard/guard.h"

const char fuzz_name[] = "acl";
const size_t fuzz_max = FSD_ACL_TEXT_MAX + 64;
const unsigned fuzz_cost = 5;

/* Every name of up to four bytes is known. */
static bool id_of(void *arg, const char *name, int32_t *id)
{
	uint32_t number = 1;

	(void)arg;
	if (strlen(name) > 4)
		return false;
	for (; *name; name++)
		number = number << 7 ^ (uint8_t)*name;
	*id = (int32_t)number;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct fsd_names names = {.id_of = id_of};
	char *text = malloc(size ? size : 1), printed[FSD_ACL_TEXT_MAX];
	struct store_acl acl, again;
	int rc, n;

	if (!text)
		exit(99);
	memcpy(text, data, size);
	rc = fsd_acl_parse(text, size, &names, &acl);
	FUZZ_CHECK(rc == 0 || rc == -EINVAL);
	free(text);
	if (rc)
		return 0;
	FUZZ_CHECK(size && !data[size - 1]);
	FUZZ_CHECK(acl.positive + acl.negative <= STORE_ACL_MAX);
	n = fsd_acl_print(&acl, NULL, printed);
	FUZZ_CHECK(n > 0 && (size_t)n == strlen(printed) + 1);
	FUZZ_CHECK(fsd_acl_parse(printed, (size_t)n, NULL, &again) == 0);
	FUZZ_CHECK(again.positive == acl.positive && again.negative == acl.negative);
	for (unsigned i = 0; i < (unsigned)acl.positive + acl.negative; i++) {
		FUZZ_CHECK(again.entry[i].id == acl.entry[i].id);
		FUZZ_CHECK(again.entry[i].rights == acl.entry[i].rights);
	}
	return 0;
}
