/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of the copy of the metadata, and how it is related to the database. */
#include "volume/store/disk/copystate.h"

#include <errno.h>
#include <string.h>

#include "volume/store/disk/mend.h"

#define MAGIC 0x3379706f43575852ull
#define CLOSED_MAGIC 0x3165736f6c435852ull
#define MARKS_OF_START \
	2 /* writes of the mark by a start; a checkpoint, which a log needs to begin anew, is behind a third one */

int store_copy_state_read(struct store_layer *layer, struct store_copy_state *state)
{
	struct store_file *file;
	int rc = layer->ops->open(layer, COPY_STATE, 0, &file);

	*state = (struct store_copy_state){0};
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	/* One that cannot be read is as good as none. */
	store_twin_read(file, state, sizeof(*state), MAGIC);
	layer->ops->close(file);
	return 0;
}

int store_copy_state_write(struct store_layer *layer, struct store_copy_state *state, bool flush)
{
	struct store_copy_state next = *state;
	struct store_file *file;
	int rc = layer->ops->open(layer, COPY_STATE, STORE_OPEN_WRITE | STORE_OPEN_CREATE, &file);

	if (rc)
		return rc;
	next.twin.magic = MAGIC;
	rc = store_twin_write(file, &next, sizeof(next));
	if (!rc && flush)
		rc = layer->ops->sync(file);
	layer->ops->close(file);
	if (!rc && flush)
		rc = layer->ops->sync_dir(layer, STORE_COPY);
	if (flush)
		*state = next;
	return rc;
}

struct closed_note {
	struct store_twin twin;
	uint64_t mark;
	uint64_t check;
};

int store_copy_note_closed(struct store_layer *store, uint64_t mark)
{
	struct closed_note note = {.twin.magic = CLOSED_MAGIC, .mark = mark};
	struct store_file *file;
	int rc = store->ops->open(store, STORE_CLOSED, STORE_OPEN_WRITE | STORE_OPEN_CREATE, &file);

	if (rc)
		return rc;
	rc = store_twin_write(file, &note, sizeof(note));
	if (!rc)
		rc = store->ops->sync(file);
	store->ops->close(file);
	return rc ? rc : store->ops->sync_dir(store, ".");
}

bool store_copy_is_noted(struct store_layer *store, uint64_t mark)
{
	struct closed_note note = {0};
	struct store_file *file;

	if (store->ops->open(store, STORE_CLOSED, 0, &file))
		return false;
	store_twin_read(file, &note, sizeof(note), CLOSED_MAGIC);
	store->ops->close(file);
	return note.twin.magic == CLOSED_MAGIC && note.mark == mark;
}

/* The contents of the copy's log. */
int store_copy_log_inspect(struct store_layer *layer, struct store_place *place)
{
	struct store_wal *wal;
	enum store_past past;
	int rc = store_wal_create(layer, STORE_COPY "/mark", COPY_LOG, NULL, NULL, &wal);

	if (rc)
		return rc;
	rc = store_wal_recover(wal, &past);
	if (!rc)
		store_wal_place(wal, place);
	store_wal_destroy(wal);
	return rc;
}

bool store_copy_has_log(const struct store_copy_state *state, const struct store_place *copy)
{
	return !state->log_end || (copy->salt == state->log_salt && copy->end >= state->log_end);
}

/* SQLite counts generations in the first half of the salt. */
bool store_copy_salt_follows(uint64_t before, uint64_t salt)
{
	return before && (uint32_t)(salt >> 32) == (uint32_t)(before >> 32) + 1;
}

/* The copy has all of a generation of the log: `copy` is what its own log has. */
static bool has_whole_generation(const struct store_copy_state *state, const struct store_place *copy)
{
	if (!state->salt)
		return false;
	if (state->moved && copy->end == 0)
		return true;
	return state->moved != COPY_MOVED && copy->salt == state->salt && copy->end == state->end;
}

/* Whether the log has not begun anew since the database was opened. */
static bool is_first_log(const struct store_copy_state *state, const struct store_place *main)
{
	uint64_t marks = main->sequence - state->mark;

	return marks <= MARKS_OF_START ||
	       (marks == MARKS_OF_START + 1 && main->end && main->salt == main->marked_salt);
}

/* Whether a page that the database's log does not have is the same in both. */
bool store_copy_is_same(const struct store_copy_state *state, const struct store_place *main,
			 const struct store_place *copy)
{
	if (state->state == COPY_CLOSED)
		return main->closed && state->mark - main->sequence <= 1 && !main->end &&
		       !copy->end;
	if (state->state != COPY_FOLLOWS)
		return false;
	if (state->mark && !copy->end && is_first_log(state, main))
		return true;
	if (copy->end && copy->salt == main->salt)
		return true;
	if (!has_whole_generation(state, copy))
		return false;
	return main->end ? store_copy_salt_follows(state->salt, main->salt)
			 : state->salt == main->marked_salt && main->marked_end <= 1;
}

bool store_copy_has_base(const struct store_copy_state *state, const struct store_place *main,
			 const struct store_place *copy)
{
	uint64_t salt = main->salt ? main->salt : main->marked_salt;

	if (state->state != COPY_FOLLOWS || !salt)
		return false;
	if ((copy->end && copy->salt == salt) ||
	    (state->mark && !copy->end && is_first_log(state, main)))
		return true;
	return has_whole_generation(state, copy) &&
	       (state->salt == salt || store_copy_salt_follows(state->salt, salt));
}

static bool read_last_frame(struct store_layer *layer, const char *path, uint64_t end,
			    uint8_t header[STORE_FRAME_HEADER])
{
	const struct iovec iov = {header, STORE_FRAME_HEADER};
	struct store_file *file;
	ssize_t n;

	if (end < STORE_FRAME_HEADER + STORE_DB_PAGE || layer->ops->open(layer, path, 0, &file))
		return false;
	n = layer->ops->preadv(file, &iov, 1, end - STORE_FRAME_HEADER - STORE_DB_PAGE, false);
	layer->ops->close(file);
	return n == STORE_FRAME_HEADER;
}

/*
 * Whether the database's log, of the same generation, has the first `end` bytes of that of the copy: a frame has a checksum of all
 * that is before it.
 */
bool store_copy_log_goes_on(struct store_layer *copy, struct store_layer *store, uint64_t end)
{
	uint8_t of_copy[STORE_FRAME_HEADER], of_store[STORE_FRAME_HEADER];

	if (end <= STORE_LOG_HEADER)
		return true;
	return read_last_frame(store, META_LOG, end, of_store) &&
	       read_last_frame(copy, COPY_LOG, end, of_copy) &&
	       memcmp(of_store, of_copy, sizeof(of_store)) == 0;
}
