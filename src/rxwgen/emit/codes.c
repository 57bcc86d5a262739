/* SPDX-License-Identifier: BSD-2-Clause */
/* Codes of an interface: constants whose comment begins with "code:", and their texts. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "rxwgen/emit/emit.h"

#define MARK "code:"

/* Skips white space and the asterisks at the beginnings of lines. */
static const char *skip_comment_decoration(const char *text)
{
	return text + strspn(text, " \t\r\n*");
}

bool xg_code_text(const struct xg_item *item, char *text, size_t room)
{
	const char *from = item->doc ? skip_comment_decoration(item->doc) : "";
	size_t n = 0;

	if (item->kind != XG_ITEM_CONST || !item->number || item->value != (int32_t)item->value ||
	    strncmp(from, MARK, strlen(MARK)) != 0)
		return false;
	from = skip_comment_decoration(from + strlen(MARK));
	while (*from && n + 2 < room) {
		if (*from != '\n' && *from != '\r') {
			text[n++] = *from++;
			continue;
		}
		/* The next line follows after a space. */
		from = skip_comment_decoration(from);
		text[n++] = ' ';
	}
	while (n && strchr(" \t", text[n - 1]))
		n--;
	text[n] = '\0';
	return true;
}

bool xg_has_codes(const struct xg_file *file)
{
	char text[8];

	for (size_t i = 0; i < file->item_count; i++)
		if (xg_code_text(&file->items[i], text, sizeof(text)))
			return true;
	return false;
}

bool xg_code_is_first(const struct xg_file *file, size_t index)
{
	char text[8];

	for (size_t i = 0; i < index; i++)
		if (xg_code_text(&file->items[i], text, sizeof(text)) &&
		    file->items[i].value == file->items[index].value)
			return false;
	return true;
}

void emit_code_prototype(struct emit *e, const struct xg_package *package)
{
	if (!xg_has_codes(e->file))
		return;
	emit_blank(e);
	emit_comment(e, "The text of a code of this interface, in English; of others that of "
			"rxw_code_text().\nStatic. Any thread.");
	emit_line(e, "const char *%scode_text(rxw_code code);", emit_package_name(e, package));
}

/* A string constant of C; bytes that are no printable ASCII characters are written as they are. */
static void emit_string_return(struct emit *e, const char *text)
{
	char line[2 * XG_CODE_TEXT + 16];
	int n = snprintf(line, sizeof(line), "\t\treturn \"");

	assert(strlen(text) < XG_CODE_TEXT);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			line[n++] = '\\';
		line[n++] = *text;
		/* no trigraphs */
		if (*text == '?' && text[1] == '?')
			line[n++] = '\\';
	}
	memcpy(line + n, "\";", 3);
	emit_raw(e, line);
}

void emit_code_text(struct emit *e, const struct xg_package *package)
{
	char text[XG_CODE_TEXT];

	if (!xg_has_codes(e->file))
		return;
	emit_blank(e);
	emit_line(e, "const char *%scode_text(rxw_code code)", emit_package_name(e, package));
	emit_open(e, "{");
	emit_line(e, "switch (code) {");
	for (size_t i = 0; i < e->file->item_count; i++) {
		const struct xg_item *item = &e->file->items[i];

		if (!xg_code_text(item, text, sizeof(text)) || !xg_code_is_first(e->file, i))
			continue;
		emit_line(e, "case %s:", item->name);
		emit_string_return(e, *text ? text : item->name);
	}
	emit_line(e, "}");
	emit_line(e, "return rxw_code_text(code);");
	emit_close(e, "}");
}
