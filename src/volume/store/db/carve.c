/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows out of pages, by the file format of SQLite: a tree of pages for each table, whose leaves have the rows. Tables
 * without row numbers are index trees, in which inner pages have rows as well.
 */
#include "volume/store/db/carve.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "volume/store/db/db_private.h"

#define HEADER	    100 /* bytes of the database in its first page */
#define COLUMNS	    6
#define RECORD_MOST (1u << 20) /* bytes of a row */
#define DEPTH_MOST  32
#define FIRST_OBJECT (1ull << 32) /* the least number of an object or a small content */

enum page_kind {
	INDEX_INNER = 2,
	TABLE_INNER = 5,
	INDEX_LEAF = 10,
	TABLE_LEAF = 13
};

enum page_state {
	UNSEEN,
	USED,
	UNUSED,
	DAMAGED
};

/* A value of a row. type: SQLITE_NULL, ... */
struct value {
	int type;
	int64_t number;
	const uint8_t *bytes;
	size_t length;
};

struct row {
	int64_t id; /* of a table tree */
	bool has_id;
	unsigned columns;
	struct value value[COLUMNS];
};

struct carving {
	struct store_pageset *set;
	struct db *db; /* NULL: no row is taken */
	struct carve_counts *counts;
	uint32_t pages;
	unsigned usable; /* bytes of a page */
	uint8_t *state;	 /* by page */
	bool hides;	/* a damaged page is above others */
	sqlite3_stmt *insert[11];
	uint8_t *record; /* RECORD_MOST bytes */
	int result;
};

/* -- the tables, and what their rows look like -- */

/* A column: N: integer, T: text, B: bytes, O: the number of the row, in a column of its own. */
static const struct table {
	const char *name, *columns;
	bool index;	     /* an index tree */
	int64_t least, most; /* numbers of rows */
} tables[] = {
	{"number", "TN", true, 0, 0},
	{"vnode", "NNNB", true, 0, 0},
	{"volume", "OTB", false, 1, UINT32_MAX},
	{"page", "ONNNNB", false, 1, INT64_MAX},
	{"small", "OB", false, FIRST_OBJECT, INT64_MAX},
	{"object", "ONNNN", false, FIRST_OBJECT, INT64_MAX},
	{"prune", "ONNNN", false, 1, FIRST_OBJECT - 1},
	{"slot", "ONNNB", false, 1, INT64_MAX},
	{"dropped", "ONNNNN", false, 1, FIRST_OBJECT - 1},
	{"location", "OB", false, 1, UINT32_MAX},
	/* The index of changes says which records of vnodes there were. */
	{"temp.known", "NNN", true, 0, 0},
};

#define VNODES 1 /* the table of vnodes */
#define TABLES (sizeof(tables) / sizeof(tables[0]))
#define ROWS   (TABLES - 1) /* all but the last one are in the database */

static bool is_row_of(const struct row *row, const struct table *table)
{
	static const char letters[] = {[SQLITE_INTEGER] = 'N',
				       [SQLITE_TEXT] = 'T',
				       [SQLITE_BLOB] = 'B',
				       [SQLITE_NULL] = 'O',
				       [SQLITE_FLOAT] = 'F'};

	if (row->columns != strlen(table->columns) || row->has_id == table->index)
		return false;
	if (row->has_id && (row->id < table->least || row->id > table->most))
		return false;
	for (unsigned i = 0; i < row->columns; i++)
		if (letters[row->value[i].type] != table->columns[i])
			return false;
	return true;
}

static void bind_value(sqlite3_stmt *statement, int at, const struct value *value)
{
	if (value->type == SQLITE_INTEGER)
		sqlite3_bind_int64(statement, at, value->number);
	else if (value->type == SQLITE_TEXT)
		sqlite3_bind_text(statement, at, (const char *)value->bytes, (int)value->length,
				  SQLITE_STATIC);
	else
		sqlite3_bind_blob(statement, at, value->bytes, (int)value->length, SQLITE_STATIC);
}

static void insert_row(struct carving *carving, unsigned which, const struct row *row)
{
	sqlite3_stmt *statement = carving->insert[which];

	for (unsigned i = 0; i < row->columns; i++) {
		struct value value = row->value[i];

		if (i == 0 && row->has_id)
			value = (struct value){.type = SQLITE_INTEGER, .number = row->id};
		bind_value(statement, (int)i + 1, &value);
	}
	carving->result = db_run(carving->db, statement);
	if (carving->result || which >= ROWS || sqlite3_changes(carving->db->sql) == 0)
		return;
	carving->counts->rows++;
	if (which == VNODES && carving->counts->taken)
		carving->counts->taken(carving->counts->arg, (uint32_t)row->value[0].number,
				       (uint32_t)row->value[1].number);
}

static void take_row(struct carving *carving, const struct row *row)
{
	for (unsigned i = 0; i < TABLES && !carving->result; i++)
		if (is_row_of(row, &tables[i])) {
			insert_row(carving, i, row);
			return;
		}
}

/* -- records -- */

/* Returns the bytes of a number of variable length at `at`; 0: it does not end. */
static unsigned read_varint(const uint8_t *at, size_t left, uint64_t *value)
{
	*value = 0;
	for (unsigned i = 0; i < 9 && i < left; i++) {
		if (i == 8) {
			*value = *value << 8 | at[i];
			return 9;
		}
		*value = *value << 7 | (at[i] & 0x7f);
		if (!(at[i] & 0x80))
			return i + 1;
	}
	return 0;
}

/* The value of a type in a record, of which *body has the rest. */
static bool read_value(uint64_t type, struct bytes *body, struct value *value)
{
	static const uint8_t sizes[] = {0, 1, 2, 3, 4, 6, 8};

	*value = (struct value){.type = SQLITE_INTEGER};
	if (type == 0) {
		value->type = SQLITE_NULL;
	} else if (type <= 6) {
		unsigned size = sizes[type];
		uint64_t number = 0;

		if (body->left < size)
			return false;
		for (unsigned i = 0; i < size; i++)
			number = number << 8 | body->at[i];
		value->number = (int64_t)(number << (64 - 8 * size)) >> (64 - 8 * size);
		body->at += size;
		body->left -= size;
	} else if (type == 8 || type == 9) {
		value->number = type == 9;
	} else if (type >= 12) {
		value->type = type & 1 ? SQLITE_TEXT : SQLITE_BLOB;
		value->length = (size_t)((type - 12) / 2);
		value->bytes = body->at;
		if (value->length > body->left)
			return false;
		body->at += value->length;
		body->left -= value->length;
	} else {
		return false;
	}
	return true;
}

static bool parse_record(const uint8_t *record, size_t length, struct row *row)
{
	struct bytes body;
	uint64_t header, type;
	unsigned n = read_varint(record, length, &header);
	size_t at = n;

	if (!n || header < n || header > length)
		return false;
	body = (struct bytes){.at = record + header, .left = length - (size_t)header};
	for (row->columns = 0; at < header; row->columns++) {
		n = read_varint(record + at, (size_t)header - at, &type);
		if (!n || row->columns == COLUMNS ||
		    !read_value(type, &body, &row->value[row->columns]))
			return false;
		at += n;
	}
	return !body.left;
}

/* -- pages -- */

static bool read_carved_page(struct carving *carving, uint32_t number, uint8_t *page)
{
	if (!number || number > carving->pages || carving->state[number] == DAMAGED)
		return false;
	return !store_pageset_read(carving->set, number, page);
}

/* Bytes of a record that are in its own page; the rest is in a chain of others. */
static size_t count_local_bytes(const struct carving *carving, size_t length, bool table)
{
	size_t usable = carving->usable;
	size_t most = table ? usable - 35 : (usable - 12) * 64 / 255 - 23;
	size_t least = (usable - 12) * 32 / 255 - 23, local;

	if (length <= most)
		return length;
	local = least + (length - least) % (usable - 4);
	return local <= most ? local : least;
}

/* Collect a record in carving->record. False: part of it is missing. */
static bool collect_record(struct carving *carving, const uint8_t *local, size_t here,
			   size_t length)
{
	uint8_t page[STORE_DB_PAGE];
	uint32_t next = here < length ? get32(local + here) : 0;
	size_t done = here;

	memcpy(carving->record, local, here);
	while (done < length) {
		size_t room = carving->usable - 4,
		       part = length - done < room ? length - done : room;

		if (!read_carved_page(carving, next, page))
			return false;
		carving->state[next] = USED;
		memcpy(carving->record + done, page + 4, part);
		done += part;
		next = get32(page);
	}
	return true;
}

static bool is_inner(uint8_t kind)
{
	return kind == INDEX_INNER || kind == TABLE_INNER;
}

/* The page's own header: behind that of the database in the first page. */
static const uint8_t *find_page_header(const uint8_t *page, uint32_t number)
{
	return page + (number == 1 ? HEADER : 0);
}

/* Whether it can be a page of a tree. */
static bool is_tree_page(const struct carving *carving, const uint8_t *page, uint32_t number,
			 unsigned *cells)
{
	const uint8_t *header = find_page_header(page, number);
	size_t from = (size_t)(header - page) + (is_inner(header[0]) ? 12 : 8);

	if (header[0] != INDEX_INNER && header[0] != TABLE_INNER && header[0] != INDEX_LEAF &&
	    header[0] != TABLE_LEAF)
		return false;
	*cells = get16(header + 3);
	return from + 2 * (size_t)*cells <= carving->usable;
}

/* The row of a cell of a leaf or of an index tree. False: there is none that can be read. */
static bool read_cell(struct carving *carving, uint8_t kind, const uint8_t *cell,
		      const uint8_t *end, struct row *row)
{
	size_t left = (size_t)(end - cell), here;
	uint64_t length, id = 0;
	unsigned n;

	if (kind == INDEX_INNER) {
		if (left < 4)
			return false;
		cell += 4;
		left -= 4;
	}
	n = read_varint(cell, left, &length);
	if (!n || length > RECORD_MOST)
		return false;
	cell += n;
	left -= n;
	row->has_id = kind == TABLE_LEAF;
	if (row->has_id) {
		n = read_varint(cell, left, &id);
		if (!n)
			return false;
		cell += n;
		left -= n;
	}
	row->id = (int64_t)id;
	here = count_local_bytes(carving, (size_t)length, row->has_id);
	if (left < here + (here < length ? 4 : 0))
		return false;
	if (!collect_record(carving, cell, here, (size_t)length)) {
		carving->counts->cut++;
		return false;
	}
	return parse_record(carving->record, (size_t)length, row);
}

/* The cell of a page; NULL: it lies outside. */
static const uint8_t *find_cell(const struct carving *carving, const uint8_t *page, uint32_t number,
				unsigned which)
{
	const uint8_t *header = find_page_header(page, number);
	unsigned at = get16(header + (is_inner(header[0]) ? 12 : 8) + 2 * which);

	return at >= 8 && at + 4 <= carving->usable ? page + at : NULL;
}

static void take_page_rows(struct carving *carving, const uint8_t *page, uint32_t number,
			   unsigned cells)
{
	uint8_t kind = find_page_header(page, number)[0];
	struct row row;

	for (unsigned i = 0; i < cells && kind != TABLE_INNER && !carving->result; i++) {
		const uint8_t *cell = find_cell(carving, page, number, i);

		if (cell && read_cell(carving, kind, cell, page + carving->usable, &row))
			take_row(carving, &row);
	}
}

/* -- trees. First the pages that can be reached, which are in use for certain; then those that a damaged page hides. -- */

/* What a page of a tree is. All leaves of a tree are at the same depth. */
enum level {
	LEVEL_UNKNOWN,
	LEVEL_SEEN, /* it was met before */
	LEVEL_LEAF,
	LEVEL_INNER
};

static enum level walk_tree(struct carving *carving, uint32_t number, bool take, unsigned depth);

/*
 * A page below that cannot be read hides others, unless one beside it shows that it is a leaf. For SQLite, a leaf of an index tree
 * hides rows as well: those of the table, or those beside it.
 */
static void walk_children(struct carving *carving, const uint8_t *page, uint32_t number,
			  unsigned cells, bool take, unsigned depth)
{
	const uint8_t *header = find_page_header(page, number);
	bool leaves = false, unknown = false;

	assert(is_inner(header[0]));
	for (unsigned i = 0; i <= cells && !carving->result; i++) {
		const uint8_t *cell = i < cells ? find_cell(carving, page, number, i) : header + 8;
		enum level level =
			cell ? walk_tree(carving, get32(cell), take, depth + 1) : LEVEL_UNKNOWN;

		leaves |= level == LEVEL_LEAF;
		unknown |= level == LEVEL_UNKNOWN;
	}
	carving->hides |= unknown && (!leaves || (!carving->db && header[0] == INDEX_INNER));
}

static enum level walk_tree(struct carving *carving, uint32_t number, bool take, unsigned depth)
{
	uint8_t page[STORE_DB_PAGE];
	unsigned cells;

	if (depth == DEPTH_MOST || !read_carved_page(carving, number, page))
		return LEVEL_UNKNOWN;
	if (carving->state[number] != UNSEEN)
		return LEVEL_SEEN;
	if (!is_tree_page(carving, page, number, &cells))
		return LEVEL_UNKNOWN;
	carving->state[number] = USED;
	if (take)
		take_page_rows(carving, page, number, cells);
	if (!is_inner(find_page_header(page, number)[0]))
		return LEVEL_LEAF;
	walk_children(carving, page, number, cells, take, depth);
	return LEVEL_INNER;
}

static void walk_root(struct carving *carving, uint32_t number, bool take)
{
	enum level level = walk_tree(carving, number, take, 0);

	carving->hides |= level == LEVEL_UNKNOWN || level == LEVEL_SEEN;
}

static bool is_text(const struct value *value, const char *text)
{
	return value->type == SQLITE_TEXT && value->length == strlen(text) &&
	       memcmp(value->bytes, text, value->length) == 0;
}

/* The tree of a row of the schema, which has a type, a name, a table, a root, and a text. */
static void walk_schema_row(struct carving *carving, const struct row *row)
{
	bool take = is_text(&row->value[0], "table") || is_text(&row->value[1], "change");

	if (row->columns == 5 && row->value[3].type == SQLITE_INTEGER)
		walk_root(carving, (uint32_t)row->value[3].number, carving->db && take);
}

static void walk_schema(struct carving *carving, const uint8_t *page, unsigned cells)
{
	for (unsigned i = 0; i < cells && !carving->result; i++) {
		const uint8_t *cell = find_cell(carving, page, 1, i);
		struct row row;

		if (cell && read_cell(carving, TABLE_LEAF, cell, page + carving->usable, &row))
			walk_schema_row(carving, &row);
		else
			carving->hides = true;
	}
}

/* The list of unused pages: each of its own pages has the next one, a count, and the numbers of others. */
static void note_unused_pages(struct carving *carving, uint32_t number)
{
	uint8_t page[STORE_DB_PAGE];

	while (read_carved_page(carving, number, page) && carving->state[number] == UNSEEN) {
		uint32_t count = get32(page + 4);

		carving->state[number] = UNUSED;
		for (uint32_t i = 0; i < count && i < carving->usable / 4 - 2; i++) {
			uint32_t unused = get32(page + 8 + 4 * i);

			if (!unused || unused > carving->pages)
				continue;
			/* Nobody needs it. */
			carving->counts->damaged -= carving->state[unused] == DAMAGED;
			carving->state[unused] = UNUSED;
		}
		number = get32(page);
	}
}

/*
 * Without the schema: the roots of the tables are the first pages, as in the new database. What is found there goes before
 * what unused pages still have.
 */
static void walk_usual_roots(struct carving *carving)
{
	sqlite3_stmt *statement =
		db_prepare(carving->db, "SELECT count(*) FROM sqlite_master WHERE rootpage>0",
			   &carving->result);
	uint32_t roots = 0;

	if (statement && !db_first(carving->db, statement))
		roots = (uint32_t)sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	for (uint32_t number = 2; number <= roots + 1 && !carving->result; number++)
		walk_root(carving, number, true);
}

static void walk_from_first_page(struct carving *carving)
{
	uint8_t page[STORE_DB_PAGE];
	unsigned cells;
	bool known = read_carved_page(carving, 1, page);

	if (known) {
		carving->state[1] = USED;
		note_unused_pages(carving, get32(page + 32));
	}
	/* The schema is short. */
	if (known && is_tree_page(carving, page, 1, &cells) && page[HEADER] == TABLE_LEAF) {
		walk_schema(carving, page, cells);
		return;
	}
	carving->hides = true;
	if (carving->db) {
		carving->hides = false;
		walk_usual_roots(carving);
	}
}

static void take_hidden_pages(struct carving *carving)
{
	uint8_t page[STORE_DB_PAGE];
	unsigned cells;

	for (uint32_t number = 2; number <= carving->pages && !carving->result; number++) {
		if (carving->state[number] != UNSEEN || !read_carved_page(carving, number, page) ||
		    !is_tree_page(carving, page, number, &cells))
			continue;
		carving->state[number] = USED;
		take_page_rows(carving, page, number, cells);
	}
}

static void find_damaged_pages(struct carving *carving)
{
	uint8_t page[STORE_DB_PAGE];

	for (uint32_t number = 1; number <= carving->pages; number++)
		if (store_pageset_read(carving->set, number, page)) {
			carving->state[number] = DAMAGED;
			carving->counts->damaged++;
		}
}

/* -- records that are known to be lost: else an older one of the same vnode would pass for the newest -- */

static int note_known_loss(struct db *db, sqlite3_stmt *row)
{
	const struct version gone = {.v.flags = VNODE_LOST};
	const struct vnode_key key = {.group = (uint32_t)sqlite3_column_int64(row, 0),
				      .vnode = (uint32_t)sqlite3_column_int64(row, 1),
				      .epoch = (uint32_t)sqlite3_column_int64(row, 2)};

	return db_vnode_insert(db, &key, &gone);
}

int db_carve_losses(struct db *db, uint64_t *lost)
{
	int result;
	sqlite3_stmt *statement = db_prepare(
		db,
		"SELECT grp, vnode, epoch FROM temp.known AS k WHERE NOT EXISTS(SELECT 1 FROM vnode"
		" WHERE vnode.grp=k.grp AND vnode.vnode=k.vnode AND vnode.epoch=k.epoch)",
		&result);

	*lost = 0;
	while (!result && (result = db_step(db, statement)) == DB_ROW) {
		result = note_known_loss(db, statement);
		++*lost;
	}
	sqlite3_finalize(statement);
	return result;
}

static int prepare_inserts(struct carving *carving)
{
	int result = 0;

	for (unsigned i = 0; i < TABLES && !result; i++) {
		char sql[80];

		snprintf(sql, sizeof(sql), "INSERT OR IGNORE INTO %s VALUES(%.*s)", tables[i].name,
			 (int)(2 * strlen(tables[i].columns) - 1), "?,?,?,?,?,?");
		carving->insert[i] = db_prepare(carving->db, sql, &result);
	}
	return result;
}

static const char *const make_known =
	"CREATE TEMP TABLE IF NOT EXISTS known(grp INTEGER, epoch INTEGER, vnode INTEGER,"
	" PRIMARY KEY(grp, epoch, vnode)) WITHOUT ROWID";

static int carve_all_pages(struct carving *carving)
{
	carving->pages = store_pageset_pages(carving->set);
	carving->usable = store_pageset_usable(carving->set);
	carving->counts->pages = carving->pages;
	carving->state = calloc((size_t)carving->pages + 1, 1);
	carving->record = malloc(RECORD_MOST);
	if (!carving->state || !carving->record)
		carving->result = -ENOMEM;
	if (carving->pages && !carving->result) {
		find_damaged_pages(carving);
		walk_from_first_page(carving);
		if (carving->hides && carving->db)
			take_hidden_pages(carving);
	}
	free(carving->state);
	free(carving->record);
	return carving->result;
}

int db_carve(struct store_pageset *set, struct db *db, struct carve_counts *counts)
{
	struct carving carving = {.set = set, .db = db, .counts = counts};
	int result;

	_Static_assert(sizeof(carving.insert) / sizeof(carving.insert[0]) == TABLES, "a statement each");
	*counts = (struct carve_counts){.taken = counts->taken, .arg = counts->arg};
	result = db_sql(db, make_known) ?: db_make_locations(db);
	if (!result)
		result = prepare_inserts(&carving);
	if (!result)
		result = carve_all_pages(&carving);
	for (unsigned i = 0; i < TABLES; i++)
		sqlite3_finalize(carving.insert[i]);
	return result;
}

int db_carve_hides(struct store_pageset *set, bool *hides)
{
	struct carve_counts counts = {0};
	struct carving carving = {.set = set, .counts = &counts};
	int result = carve_all_pages(&carving);

	*hides = carving.hides || !carving.pages;
	return result;
}
