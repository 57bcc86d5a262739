/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writers of a store that is stopped at any time. Operation n of a writer follows from the writer and n
 * alone, and always succeeds; the directory "wWRITER" has the files.
 */
#ifndef TESTS_STORE_MODEL_H
#define TESTS_STORE_MODEL_H

#include "volume/store/store.h"

#define MODEL_NAMES 4

/* Files, as the bytes of state_bytes() with `seed`; length UINT64_MAX: it is missing. */
struct model {
	uint64_t length[MODEL_NAMES];
	uint32_t seed[MODEL_NAMES];
};

void model_begin(struct model *model);
/* Operation n, which comes after all before it: 0 or a result of the store. */
int model_perform(struct store *store, uint32_t volume, struct model *model, unsigned writer,
		  uint32_t n);
/* Operation n, in the model only. */
void model_skip(struct model *model, unsigned writer, uint32_t n);
/* Whether the directory of a writer is as the model says. */
bool model_matches(struct store *store, uint32_t volume, const struct model *model,
		   unsigned writer);
/*
 * Bring a model from operation *next to what was acknowledged, or to one more, whichever the store
 * has. False: neither.
 */
bool model_follow(struct store *store, uint32_t volume, struct model *model, unsigned writer,
		  uint32_t *next, uint32_t acknowledged);

#endif
