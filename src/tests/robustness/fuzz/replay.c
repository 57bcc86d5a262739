/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a fuzz target without libFuzzer: every input of its corpus, then mutations of them from a
 * fixed seed. Files or inputs named on the command line are run instead, one by one, to analyse a
 * finding. The name of each input is printed before it runs: the last one is that of the failure.
 * RXW_FUZZ_RUNS and RXW_TEST_SEED set number and seed, RXW_FUZZ_SECONDS a duration instead. With
 * RXW_FUZZ_KEEP=FILE the current input is in FILE after a crash.
 */

#include "fuzz.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"

#ifdef RXW_SANITIZERS
#define RUNS 200000
#else
#define RUNS 1000000
#endif

struct input {
	char *name;
	uint8_t *data;
	size_t size;
};

static struct input *corpus;
static size_t corpus_count;

static bool load_file(const char *path, struct input *in)
{
	FILE *f = fopen(path, "rb");
	long size;

	if (!f)
		return false;
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	rewind(f);
	in->size = size > 0 ? (size_t)size : 0;
	in->data = malloc(in->size + 1);
	if (!in->data || fread(in->data, 1, in->size, f) != in->size) {
		fclose(f);
		return false;
	}
	fclose(f);
	return true;
}

/* In a buffer of exactly its size, so that a sanitizer detects any read beyond it. */
static void run(const uint8_t *data, size_t size, const char *keep)
{
	uint8_t *p = malloc(size ? size : 1);

	if (!p)
		exit(99);
	memcpy(p, data, size);
	if (keep) {
		FILE *f = fopen(keep, "wb");

		if (f) {
			fwrite(p, 1, size, f);
			fclose(f);
		}
	}
	LLVMFuzzerTestOneInput(p, size);
	free(p);
}

/* Room for n more bytes at the end of an input. */
static uint8_t *extend_input(struct input *in, size_t n)
{
	in->data = realloc(in->data, in->size + n + 1);
	if (!in->data)
		exit(99);
	return in->data + in->size;
}

static void add_input(const char *name)
{
	corpus = realloc(corpus, (corpus_count + 1) * sizeof(*corpus));
	if (!corpus)
		exit(99);
	corpus[corpus_count] = (struct input){.name = strdup(name)};
	extend_input(&corpus[corpus_count++], 0);
}

static int digit_value(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Pairs of digits, with spaces between some of them. */
static bool read_bytes(struct input *in, const char *line)
{
	uint8_t *to = extend_input(in, strlen(line) / 2);

	for (; *line; line++) {
		int high, low;

		if (*line == ' ')
			continue;
		high = digit_value(line[0]);
		low = digit_value(line[1]);
		if (high < 0 || low < 0)
			return false;
		*to++ = (uint8_t)(high << 4 | low);
		in->size++;
		line++;
	}
	return true;
}

/* One line, without its newline, of the format that README.md describes. */
static bool read_line(const char *line)
{
	struct input *in = corpus_count ? &corpus[corpus_count - 1] : NULL;
	size_t n = strlen(line);

	if (!strncmp(line, "-- ", 3)) {
		add_input(line + 3);
		return true;
	}
	if (line[0] == '#')
		return true;
	if (!in)
		return false;
	if (line[0] != '|')
		return read_bytes(in, line);
	memcpy(extend_input(in, n), line + 1, n - 1);
	in->size += n;
	in->data[in->size - 1] = '\n';
	return true;
}

/* In the order of the file, so that a seed gives the same run everywhere. */
static bool load_corpus(const char *path)
{
	char *line = NULL;
	size_t room = 0;
	unsigned number = 0;
	bool good = true;
	ssize_t n;
	FILE *f = fopen(path, "r");

	if (!f) {
		perror(path);
		return false;
	}
	while (good && (n = getline(&line, &room, f)) > 0) {
		number++;
		if (line[n - 1] == '\n')
			line[n - 1] = 0;
		good = read_line(line);
		if (!good)
			fprintf(stderr, "%s:%u: neither an input's name nor its bytes\n", path,
				number);
	}
	free(line);
	fclose(f);
	if (good && !corpus_count)
		fprintf(stderr, "%s: no inputs\n", path);
	return good && corpus_count;
}

static const struct input *find_input(const char *name)
{
	for (size_t i = 0; i < corpus_count; i++)
		if (!strcmp(corpus[i].name, name))
			return &corpus[i];
	return NULL;
}

static void run_input(const struct input *in, const char *keep)
{
	printf("%s: %s\n", fuzz_name, in->name);
	fflush(stdout);
	run(in->data, in->size, keep);
}

/* A file or an input of the corpus. */
static bool run_named(const char *name)
{
	const struct input *in = find_input(name);
	struct input one = {.name = (char *)name};

	if (!in && !load_file(name, &one)) {
		fprintf(stderr, "%s: neither a file nor an input of the corpus\n", name);
		return false;
	}
	run_input(in ? in : &one, NULL);
	free(one.data);
	return true;
}

static void free_corpus(void)
{
	for (size_t i = 0; i < corpus_count; i++) {
		free(corpus[i].name);
		free(corpus[i].data);
	}
	free(corpus);
}

/* One mutation of p[0..size), which has room for fuzz_max. Returns the new size. */
static size_t mutate(uint8_t *p, size_t size, uint64_t *state)
{
	static const uint32_t words[] = { 0,          1,          0xff,       0x100, 0x7fffffff,
					  0x80000000, 0xffffffff, 0xfffffffc, 255,   256 };
	uint64_t r = rxw_prng(state);
	size_t at = size ? (size_t)(r >> 32) % size : 0, n;
	const struct input *other;
	uint32_t word;

	switch (r % 8) {
	case 0:
		if (size)
			p[at] ^= (uint8_t)(1u << (r >> 8) % 8);
		return size;
	case 1:
		if (size)
			p[at] = (uint8_t)(r >> 8);
		return size;
	case 2: /* an interesting word, big-endian */
		word = words[(r >> 8) % (sizeof(words) / sizeof(words[0]))];
		for (n = 0; n < 4 && at + n < size; n++)
			p[at + n] = (uint8_t)(word >> (24 - 8 * n));
		return size;
	case 3: /* truncate */
		return at;
	case 4: /* grow */
		n = (r >> 8) % 40;
		for (; n && size < fuzz_max; n--)
			p[size++] = (uint8_t)rxw_prng(state);
		return size;
	case 5: /* remove bytes */
		n = (r >> 8) % 16;
		n = n > size - at ? size - at : n;
		memmove(p + at, p + at + n, size - at - n);
		return size - n;
	case 6: /* append the end of another input */
		other = &corpus[(r >> 8) % corpus_count];
		for (n = at; n < other->size && n < fuzz_max; n++)
			p[n] = other->data[n];
		return n > size ? n : size;
	default: /* change bytes near one position */
		if (size)
			p[at] = (uint8_t)(p[at] + ((r >> 8) % 9) - 4);
		return size;
	}
}

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/*
 * Mutations of the corpus: `runs` of them, or for `seconds` if that is not 0. Returns their number.
 */
static unsigned long run_mutations(unsigned long runs, long seconds, const char *keep)
{
	const char *seed_text = getenv("RXW_TEST_SEED");
	uint64_t state = seed_text ? strtoull(seed_text, NULL, 0) : 0x5278ull;
	uint8_t *work = malloc(fuzz_max);
	time_t end = now() + seconds;
	unsigned long i;

	if (!work)
		exit(99);
	for (i = 0; seconds ? i % 256 || now() < end : i < runs; i++) {
		const struct input *from = &corpus[rxw_prng(&state) % corpus_count];
		size_t size = from->size < fuzz_max ? from->size : fuzz_max;

		memcpy(work, from->data, size);
		for (unsigned n = 1 + (unsigned)(rxw_prng(&state) % 6); n; n--)
			size = mutate(work, size, &state);
		run(work, size, keep);
	}
	free(work);
	return i;
}

int main(int argc, char **argv)
{
	const char *runs_text = getenv("RXW_FUZZ_RUNS"), *keep = getenv("RXW_FUZZ_KEEP");
	const char *seconds_text = getenv("RXW_FUZZ_SECONDS");
	unsigned long runs = runs_text ? strtoul(runs_text, NULL, 0) : RUNS / fuzz_cost;
	char path[1024];
	int status = 0;

	snprintf(path, sizeof(path), "%s/robustness/fuzz/corpus/%s.hex", RXW_TEST_SRCDIR,
		 fuzz_name);
	if (!load_corpus(path))
		return 99;
	for (int i = 1; i < argc && !status; i++)
		status = run_named(argv[i]) ? 0 : 1;
	if (argc == 1) {
		for (size_t i = 0; i < corpus_count; i++)
			run_input(&corpus[i], keep);
		printf("%s: mutations\n", fuzz_name);
		fflush(stdout);
		runs = run_mutations(runs, seconds_text ? strtol(seconds_text, NULL, 0) : 0, keep);
		printf("%s: %zu inputs, %lu mutations\n", fuzz_name, corpus_count, runs);
	}
	free_corpus();
	return status;
}
