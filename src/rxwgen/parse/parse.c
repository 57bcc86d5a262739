/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser's tokens and items: reading, expecting, reporting. */
#include "rxwgen/parse/parse.h"

#include <assert.h>
#include <string.h>

static void add_pending_item(struct parser *p, struct xg_item item)
{
	p->pending =
		arena_grow(p->arena, p->pending, p->pending_count, &p->pending_room, sizeof(item));
	p->pending[p->pending_count++] = item;
}

void parse_advance(struct parser *p)
{
	const char *after = NULL;

	if (p->token.kind == '{')
		p->depth++;
	else if (p->token.kind == '}' && p->depth)
		p->depth--;
	for (;;) {
		pp_next(p->pp, &p->token);
		/* A comment after the previous token belongs to that token, not to a % line. */
		after = after ? after : p->token.after;
		if (p->token.kind == TOKEN_LINE)
			add_pending_item(p, (struct xg_item){.kind = XG_ITEM_LINE,
							     .text = p->token.text,
							     .doc = p->token.before});
		else if (p->token.kind == TOKEN_HEADER)
			add_pending_item(
				p, (struct xg_item){.kind = XG_ITEM_HEADER, .text = p->token.text});
		else
			break;
	}
	p->token.after = after;
}

void parse_flush_items(struct parser *p)
{
	for (size_t i = 0; i < p->pending_count; i++) {
		p->items = arena_grow(p->arena, p->items, p->item_count, &p->item_room,
				      sizeof(p->items[0]));
		p->items[p->item_count++] = p->pending[i];
	}
	p->pending_count = 0;
}

void parse_add_item(struct parser *p, struct xg_item item)
{
	parse_flush_items(p);
	p->items = arena_grow(p->arena, p->items, p->item_count, &p->item_room, sizeof(item));
	p->items[p->item_count++] = item;
}

void parse_done(struct parser *p, struct xg_item item, const char **doc)
{
	size_t index;

	if (!p->included)
		parse_add_item(p, item);
	index = p->item_count - 1;
	parse_advance(p);
	if (!*doc)
		*doc = p->token.after;
	if (!p->included) {
		assert(index < p->item_count);
		p->items[index].doc = *doc;
	}
}

static void note_incomplete_end(struct parser *p)
{
	if (p->token.kind == TOKEN_END && p->start.source)
		diag_note(p->diag, p->start, "the incomplete definition begins here");
}

bool parse_unexpected(struct parser *p, const char *expected)
{
	char room[NAME_LONGEST + 64];

	diag_error(p->diag, p->token.loc, "expected %s, found %s", expected,
		   token_text(&p->token, room, sizeof(room)));
	note_incomplete_end(p);
	return false;
}

bool parse_expect(struct parser *p, int kind, const char *where)
{
	char room[64], expected[256];

	if (p->token.kind == kind) {
		parse_advance(p);
		return true;
	}
	snprintf(expected, sizeof(expected), "%s %s", token_kind_text(kind, room, sizeof(room)),
		 where);
	return parse_unexpected(p, expected);
}

struct name *parse_name(struct parser *p, const char *what)
{
	struct name *name = p->token.name;
	char expected[128];

	if (p->token.kind != TOKEN_NAME) {
		if (p->token.kind > TOKEN_KEYWORDS - 1 && p->token.kind < TOKEN_KINDS)
			diag_error(p->diag, p->token.loc,
				   "expected the name of %s, found the keyword '%s'", what,
				   p->token.text);
		else {
			snprintf(expected, sizeof(expected), "the name of %s", what);
			parse_unexpected(p, expected);
		}
		return NULL;
	}
	if (name_is_c_word(name->text))
		diag_error(p->diag, p->token.loc,
			   "'%s' is reserved in C and cannot be the name of %s; choose another "
			   "name, such as '%s_'",
			   name->text, what, name->text);
	return name;
}
