/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interface of a fuzz target: libFuzzer's entry, and the name of its corpus for the replay program.
 */
#ifndef RXW_TESTS_FUZZ_H
#define RXW_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* corpus/NAME.hex has the initial inputs. */
extern const char fuzz_name[];
/* Maximum input size for replay.c. */
extern const size_t fuzz_max;
/* Duration of a run relative to a small parser. replay.c divides the number of runs by it. */
extern const unsigned fuzz_cost;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property that must hold for every input. Not assert(): NDEBUG must not remove it. */
#define FUZZ_CHECK(condition)                                                            \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, \
				#condition);                                             \
			abort();                                                         \
		}                                                                        \
	} while (0)

#endif
