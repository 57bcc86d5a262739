/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: tunables as text. The input is a configuration file, and also lines of names and
 * values. Accepted values take effect, and can be written and read again.
 */

#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rxwire/error.h>

#include "program/options.h"

const char fuzz_name[] = "config";
const size_t fuzz_max = 2048;
const unsigned fuzz_cost = 40;

struct target {
	bool flag;
	uint64_t number, size, time;
	int choice;
};

static const struct tools_option options[] = {
	{.name = "flag",
	 .letter = 'f',
	 .kind = TOOLS_FLAG,
	 .offset = offsetof(struct target, flag)},
	{.name = "number",
	 .kind = TOOLS_UINT,
	 .offset = offsetof(struct target, number),
	 .argument = "N",
	 .min = 1,
	 .max = 99},
	{.name = "size",
	 .kind = TOOLS_SIZE,
	 .offset = offsetof(struct target, size),
	 .argument = "BYTES",
	 .min = 4096},
	{.name = "time",
	 .kind = TOOLS_DURATION,
	 .offset = offsetof(struct target, time),
	 .argument = "TIME",
	 .max = 3600000},
	{.name = "choice",
	 .kind = TOOLS_CHOICE,
	 .offset = offsetof(struct target, choice),
	 .argument = "one|two|three"},
	{.name = "window", .letter = 'w', .kind = TOOLS_TUNABLE, .argument = "N"},
};

static const struct tools_program program = {.name = "rxperf",
					     .usage = "",
					     .summary = "",
					     .options = options,
					     .option_count = sizeof(options) / sizeof(options[0])};

/* Every tunable can be written as text, and reading it gives the same value. */
static void check_config(const struct rxw_config *config)
{
	size_t count;
	const struct rxw_option *table = rxw_config_options(&count);
	struct rxw_config copy;

	rxw_config_init(&copy, sizeof(copy));
	for (size_t i = 0; i < count; i++) {
		char text[512], again[512];
		int n = rxw_config_get(config, table[i].name, text, sizeof(text));

		FUZZ_CHECK(n >= 0 && (size_t)n == strlen(text));
		FUZZ_CHECK(!*text || !rxw_config_set(&copy, table[i].name, text, NULL, 0));
		FUZZ_CHECK(rxw_config_get(&copy, table[i].name, again, sizeof(again)) == n);
		FUZZ_CHECK(!strcmp(text, again));
		if (n > 0)
			FUZZ_CHECK(rxw_config_get(config, table[i].name, text, (size_t)n) < 0);
	}
}

/* A "name value" pair in each line. */
static void set_lines(struct rxw_config *config, char *text)
{
	char message[256], *line, *save = NULL;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *value = strpbrk(line, " =");
		struct rxw_config before = *config;
		int rc;

		if (value)
			*value++ = 0;
		memset(message, 'x', sizeof(message));
		rc = rxw_config_set(config, line, value ? value : "", message, sizeof(message));
		if (!rc)
			continue;
		FUZZ_CHECK(rc == -RXW_ENAME || rc == -RXW_EVALUE);
		FUZZ_CHECK(memchr(message, 0, sizeof(message)) && *message);
		FUZZ_CHECK(!memcmp(&before, config, sizeof(before)));
	}
}

/* As a file. An error message names the line. */
static void read_file(struct rxw_config *config, const uint8_t *data, size_t size)
{
	static char path[64];
	static int fd = -1;
	struct target target = {.number = 1, .size = 4096};
	char message[512] = "";

	if (fd < 0) {
		fd = memfd_create("rxwire.conf", MFD_CLOEXEC);
		FUZZ_CHECK(fd >= 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	FUZZ_CHECK(ftruncate(fd, 0) == 0);
	FUZZ_CHECK(pwrite(fd, data, size, 0) == (ssize_t)size);
	if (tools_config_read(&program, &target, config, path, message, sizeof(message)))
		FUZZ_CHECK(!strncmp(message, path, strlen(path)));
	else
		FUZZ_CHECK(!*message);
	FUZZ_CHECK(target.number >= 1 && target.number <= 99 && target.size >= 4096);
	FUZZ_CHECK(target.time <= 3600000 && target.choice >= 0 && target.choice < 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rxw_config config;
	char *text = malloc(size + 1);

	if (!text)
		exit(99);
	memcpy(text, data, size);
	text[size] = 0;
	rxw_config_init(&config, sizeof(config));
	set_lines(&config, text);
	free(text);
	check_config(&config);
	read_file(&config, data, size);
	check_config(&config);
	return 0;
}
