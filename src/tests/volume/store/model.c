/* SPDX-License-Identifier: BSD-2-Clause */
/* Writers whose operations follow from their numbers, and whether a store has what they did. */
#include "tests/volume/store/model.h"

#include <stdio.h>
#include <string.h>

#include "tests/volume/store/crashdisk.h"
#include "tests/volume/store/state.h"

struct step {
	enum { CREATE, WRITE, RENAME, REMOVE } what;
	unsigned name, to;
	uint64_t length;
};

void model_begin(struct model *model)
{
	memset(model, 0, sizeof(*model));
	for (int i = 0; i < MODEL_NAMES; i++)
		model->length[i] = UINT64_MAX;
}

/* The next step in a state of the model; it always succeeds. */
static struct step choose(const struct model *model, unsigned writer, uint32_t n)
{
	uint64_t random = (uint64_t)writer << 32 | n;
	struct step step = {.name = (unsigned)(crashdisk_random(&random) % MODEL_NAMES)};

	step.to = (unsigned)(crashdisk_random(&random) % (MODEL_NAMES - 1));
	step.to = (step.name + 1 + step.to) % MODEL_NAMES;
	step.length = crashdisk_random(&random) % (crashdisk_random(&random) % 4 ? 3000 : 300000);
	if (model->length[step.name] == UINT64_MAX) {
		step.what = CREATE;
		return step;
	}
	switch (crashdisk_random(&random) % 8) {
	case 0:
		step.what = RENAME;
		break;
	case 1:
		step.what = REMOVE;
		break;
	default:
		step.what = WRITE;
	}
	return step;
}

static void apply(struct model *model, const struct step *step, uint32_t n)
{
	switch (step->what) {
	case CREATE:
		model->length[step->name] = 0;
		break;
	case WRITE:
		model->length[step->name] = step->length;
		model->seed[step->name] = n;
		break;
	case RENAME:
		model->length[step->to] = model->length[step->name];
		model->seed[step->to] = model->seed[step->name];
		model->length[step->name] = UINT64_MAX;
		break;
	default:
		model->length[step->name] = UINT64_MAX;
	}
}

static const char *path_of(char path[32], unsigned writer, unsigned name)
{
	snprintf(path, 32, "w%u/f%u", writer, name);
	return path;
}

static int perform(struct store *store, uint32_t volume, const struct step *step, unsigned writer,
		   uint32_t n)
{
	char path[32], to[32];

	path_of(path, writer, step->name);
	switch (step->what) {
	case CREATE:
		return state_create(store, volume, path, STORE_FILE, NULL);
	case WRITE:
		return state_write(store, volume, path, 0, step->length, step->length, n);
	case RENAME:
		return state_rename(store, volume, path, path_of(to, writer, step->to));
	default:
		return state_remove(store, volume, path, STORE_FILE);
	}
}

int model_perform(struct store *store, uint32_t volume, struct model *model, unsigned writer,
		  uint32_t n)
{
	struct step step = choose(model, writer, n);
	int result = perform(store, volume, &step, writer, n);

	if (!result)
		apply(model, &step, n);
	return result;
}

void model_skip(struct model *model, unsigned writer, uint32_t n)
{
	struct step step = choose(model, writer, n);

	apply(model, &step, n);
}

bool model_matches(struct store *store, uint32_t volume, const struct model *model, unsigned writer)
{
	static uint8_t want[300000], got[300000];
	struct store_reader *reader;
	struct store_status status;
	struct store_fid fid;
	char path[32];

	for (unsigned i = 0; i < MODEL_NAMES; i++) {
		struct iovec iov = {got, sizeof(got)};
		bool same;

		if (state_walk(store, volume, path_of(path, writer, i), &fid)) {
			if (model->length[i] != UINT64_MAX)
				return false;
			continue;
		}
		if (model->length[i] == UINT64_MAX ||
		    store->ops->read_begin(store, &state_admin, &fid, &reader, &status))
			return false;
		state_bytes(want, 0, model->length[i], model->seed[i]);
		same = status.length == model->length[i] &&
		       store->ops->read(reader, &iov, 1, 0, 0) == (ssize_t)status.length &&
		       memcmp(want, got, status.length) == 0;
		store->ops->read_end(reader);
		if (!same)
			return false;
	}
	return true;
}

bool model_follow(struct store *store, uint32_t volume, struct model *model, unsigned writer,
		  uint32_t *next, uint32_t acknowledged)
{
	for (; *next < acknowledged; ++*next)
		model_skip(model, writer, *next);
	if (model_matches(store, volume, model, writer))
		return true;
	model_skip(model, writer, (*next)++);
	return model_matches(store, volume, model, writer);
}
