/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: rxwgen. The first byte selects the output and the options, the rest is the file. For
 * all input the compiler ends, frees everything, and writes C or an error message.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rxwgen/xg.h"

const char fuzz_name[] = "xg";
const size_t fuzz_max = 4096;
const unsigned fuzz_cost = 40;

/* The input under a file name that can be opened. */
static const char *as_file(const uint8_t *data, size_t size)
{
	static char path[64];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("input.xg", MFD_CLOEXEC);
		FUZZ_CHECK(fd >= 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	FUZZ_CHECK(ftruncate(fd, 0) == 0);
	FUZZ_CHECK(pwrite(fd, data, size, 0) == (ssize_t)size);
	return path;
}

/* Guarantees for the writers. */
static void check_file(const struct xg_file *file)
{
	for (size_t i = 0; i < file->package_count; i++) {
		const struct xg_package *package = file->packages[i];

		FUZZ_CHECK(package->proc_count <= 500);
		for (size_t k = 0; k < package->proc_count; k++) {
			FUZZ_CHECK(package->procs[k]->index == k);
			FUZZ_CHECK(package->procs[k]->opcode >= package->lowest);
			FUZZ_CHECK(package->procs[k]->opcode <= package->highest);
			FUZZ_CHECK(package->lowest >= 0);
		}
	}
	for (size_t i = 0; i < file->type_count; i++) {
		const struct xg_type *type = file->types[i];

		FUZZ_CHECK(type->c_size > 0 && type->c_size <= INT32_MAX);
		FUZZ_CHECK(type->wire_min >= 4 && type->wire_min % 4 == 0);
		FUZZ_CHECK(!type->wire_size || type->wire_size == type->wire_min);
		FUZZ_CHECK(type->owns || type->wire_size || type->what == XG_UNION ||
			   type->what == XG_STRUCT || type->what == XG_TYPEDEF);
		for (size_t k = 0; k < type->member_count; k++)
			FUZZ_CHECK(type->members[k].name && type->members[k].kind != XG_VOID);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *nowhere;
	struct xg_options options = {.prefix = "", .request_max = 1048576};
	struct xg_file *file;
	size_t length = 0;
	char *text = NULL;

	if (!size)
		return 0;
	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	options.messages = nowhere;
	options.skip_included = data[0] & 4;
	options.warn_unbounded = data[0] & 8;
	options.warn_direction = data[0] & 16;
	options.short_fields = data[0] & 32;
	options.statistics = data[0] & 64;
	options.no_errno_swap = data[0] & 128;
	file = xg_read(as_file(data + 1, size - 1), &options,
		       (enum xg_output)(data[0] % XG_OUTPUTS));
	if (!file)
		return 0;
	check_file(file);
	FUZZ_CHECK(xg_write(file, &options, &text, &length));
	FUZZ_CHECK(strlen(text) == length);
	free(text);
	xg_file_free(file);
	return 0;
}
