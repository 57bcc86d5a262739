/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Speed of fcrypt by number of packets per batch, and of OpenAFS's if its code is given
 * as a shared object: fcrypt [OBJECT]. Runs alternate. Prints one line of JSON.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "count.h"
#include "rxkad/fcrypt.h"

#define ROUNDS	41
#define PACKET	1408u /* bytes of a full packet that is encrypted */
#define PACKETS 64u
#define EACH	(8u * PACKETS) /* maximum packets in a round */
#define MOST	32u

/* OpenAFS's names. The schedule is 16 words; the chaining value two, changed by the call. */
typedef int32_t (*openafs_pcbc)(void *in, void *out, int32_t length, const int32_t *schedule,
				uint32_t *iv, int encrypt);
typedef int (*openafs_key)(void *key, int32_t *schedule);

static uint8_t memory[PACKETS][PACKET] __attribute__((aligned(64)));
static struct rxw_fcrypt key;
static openafs_pcbc their_pcbc;
static int32_t their_key[16];

static struct contestant {
	char name[48];
	bool theirs;	  /* OpenAFS's */
	unsigned packets; /* packets per batch */
	unsigned passes;  /* packets per round */
	bool back;
	double seconds[ROUNDS]; /* seconds per byte */
	uint64_t instructions;
} contestants[MOST];
static unsigned contestant_count;

static void add(bool theirs, unsigned packets, bool back)
{
	struct contestant *c = &contestants[contestant_count];

	if (contestant_count == MOST)
		return;
	contestant_count++;
	c->theirs = theirs;
	c->packets = packets;
	c->back = back;
	c->passes = EACH / packets;
	snprintf(c->name, sizeof(c->name), "%s_%s_%u", theirs ? "openafs" : "portable",
		 back ? "decrypt" : "encrypt", packets);
}

/* Bytes per round. */
static double bytes_of(const struct contestant *c)
{
	return 1.0 * c->passes * c->packets * PACKET;
}

static void pass(const struct contestant *c, unsigned first)
{
	struct rxw_fcrypt_text texts[PACKETS];

	if (c->theirs) {
		uint32_t iv[2] = {1, 2};

		their_pcbc(memory[first], memory[first], PACKET, their_key, iv, !c->back);
		return;
	}
	for (unsigned i = 0; i < c->packets; i++)
		texts[i] = (struct rxw_fcrypt_text){memory[first + i], PACKET / 8, 0x100000002};
	if (c->back)
		rxw_fcrypt_pcbc_decrypt(&key, texts, c->packets);
	else
		rxw_fcrypt_pcbc_encrypt(&key, texts, c->packets);
}

/* The same key, initialisation vector and text must give the same bytes as OpenAFS's code. */
static int check(void)
{
	static uint8_t ours[PACKET], theirs[PACKET];
	struct rxw_fcrypt_text text = {ours, PACKET / 8, 0};
	uint32_t iv[2];
	uint8_t start[8] = {0x8a, 0xf2, 0x20, 0x1f, 0x9e, 0xe5, 0x91, 0xc4};

	memcpy(ours, memory, PACKET);
	memcpy(theirs, memory, PACKET);
	for (unsigned i = 0; i < 8; i++)
		text.x = text.x << 8 | start[i];
	rxw_fcrypt_pcbc_encrypt(&key, &text, 1);
	memcpy(iv, start, sizeof(iv));
	their_pcbc(theirs, theirs, PACKET, their_key, iv, 1);
	return memcmp(ours, theirs, PACKET) ? -1 : 0;
}

static int load(const char *path)
{
	uint8_t bytes[8] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};
	void *object = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	openafs_key schedule;

	if (!object) {
		fprintf(stderr, "fcrypt: %s\n", dlerror());
		return -1;
	}
	their_pcbc = (openafs_pcbc)dlsym(object, "fc_cbc_encrypt");
	schedule = (openafs_key)dlsym(object, "fc_keysched");
	if (!their_pcbc || !schedule) {
		fprintf(stderr, "fcrypt: %s: no fcrypt in it\n", path);
		return -1;
	}
	schedule(bytes, their_key);
	if (check()) {
		fprintf(stderr, "fcrypt: OpenAFS's result differs from ours\n");
		return -1;
	}
	add(true, 1, false);
	add(true, 1, true);
	return 0;
}

int main(int argc, char **argv)
{
	static const unsigned counts[] = {1, 2, 4, 8, 16, 32, 45, 64};
	uint8_t bytes[8] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};
	int counter = count_open(0);

	rxw_fcrypt_key(&key, bytes);
	for (unsigned i = 0; i < PACKETS; i++)
		for (unsigned j = 0; j < PACKET; j++)
			memory[i][j] = (uint8_t)(i * 7 + j * 13);
	if (argc > 1 && load(argv[1]))
		return 1;
	for (unsigned i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		add(false, counts[i], false);
	add(false, 1, true);
	add(false, PACKETS, true);
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned n = 0; n < contestant_count; n++) {
			struct contestant *c = &contestants[n];
			uint64_t instructions = count_read(counter);
			double start = count_now();

			for (unsigned i = 0; i < c->passes; i++) {
				unsigned first = i * c->packets % PACKETS;

				pass(c, first + c->packets <= PACKETS ? first : 0);
			}
			c->seconds[round] = (count_now() - start) / bytes_of(c);
			c->instructions += count_read(counter) - instructions;
		}
	printf("{\"packet\": %u", PACKET);
	for (unsigned n = 0; n < contestant_count; n++) {
		struct contestant *c = &contestants[n];

		printf(", \"%s_MBps\": %.1f", c->name, 1e-6 / count_median(c->seconds, ROUNDS));
		if (c->instructions)
			printf(", \"%s_instructions_per_byte\": %.2f", c->name,
			       (double)c->instructions / (ROUNDS * bytes_of(c)));
	}
	printf("}\n");
	return 0;
}
