/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a fuzz target without libFuzzer: every file of its corpus, then mutations of them from a
 * fixed seed. Files named on the command line are run instead, one by one, to analyse a finding.
 * RXW_FUZZ_RUNS and RXW_TEST_SEED set number and seed, RXW_FUZZ_SECONDS a duration instead. With
 * RXW_FUZZ_KEEP=FILE the current input is in FILE after a crash.
 */

#include "fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"

#ifdef RXW_SANITIZERS
#define RUNS 200000
#else
#define RUNS 1000000
#endif
#define MAX_FILES 1024

struct input {
	uint8_t *data;
	size_t size;
};

static struct input corpus[MAX_FILES];
static size_t corpus_count;

static bool load(const char *path, struct input *in)
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

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted by name, so that a seed gives the same run everywhere. */
static int load_corpus(const char *folder)
{
	char *names[MAX_FILES], path[2048];
	struct dirent *entry;
	size_t n = 0;
	DIR *d = opendir(folder);

	if (!d) {
		perror(folder);
		return -1;
	}
	while ((entry = readdir(d)) && n < MAX_FILES)
		if (entry->d_name[0] != '.')
			names[n++] = strdup(entry->d_name);
	closedir(d);
	qsort(names, n, sizeof(names[0]), by_name);
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		if (!load(path, &corpus[corpus_count++])) {
			perror(path);
			return -1;
		}
		free(names[i]);
	}
	return 0;
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
	char folder[1024];
	struct input one;

	for (int i = 1; i < argc; i++) {
		if (!load(argv[i], &one)) {
			perror(argv[i]);
			return 1;
		}
		run(one.data, one.size, NULL);
		free(one.data);
	}
	if (argc > 1)
		return 0;
	snprintf(folder, sizeof(folder), "%s/robustness/fuzz/corpus/%s", RXW_TEST_SRCDIR, fuzz_name);
	if (load_corpus(folder) || !corpus_count) {
		fprintf(stderr, "%s: no corpus\n", folder);
		return 99;
	}
	for (size_t i = 0; i < corpus_count; i++)
		run(corpus[i].data, corpus[i].size, keep);
	runs = run_mutations(runs, seconds_text ? strtol(seconds_text, NULL, 0) : 0, keep);
	printf("%s: %zu inputs, %lu mutations\n", fuzz_name, corpus_count, runs);
	for (size_t i = 0; i < corpus_count; i++)
		free(corpus[i].data);
	return 0;
}
