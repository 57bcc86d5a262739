/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of paths as text: UTF-8 in every case, and the same bytes again. */
#include <stdio.h>
#include <string.h>

#include "admin/private.h"
#include "tests/main.h"

static void check_path(const char *bytes)
{
	char *text = admin_text(bytes), *back;
	json_t *json = json_string(text), *shown; /* checks the encoding */

	ck_assert_msg(json != NULL, "\"%s\" is not UTF-8", text);
	back = admin_bytes(text);
	ck_assert_str_eq(back, bytes);
	json_decref(json);
	shown = admin_show(bytes);
	json = json_string(json_string_value(shown));
	ck_assert_msg(json != NULL, "what is shown of \"%s\" is not UTF-8", text);
	json_decref(json);
	json_decref(shown);
	free(text);
	free(back);
}

/* All pairs of bytes, alone and in front of what continues a character. */
START_TEST(all_pairs)
{
	static const char *const tails[] = {"", "\x80", "\x80\x80", "\xbf\xbf\xbf", "a"};
	char bytes[8];

	for (unsigned a = 1; a < 256; a++)
		for (unsigned b = 1; b < 256; b++)
			for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
				snprintf(bytes, sizeof(bytes), "%c%c%s", (char)a, (char)b,
					 tails[i]);
				check_path(bytes);
			}
	check_path("");
}
END_TEST

START_TEST(forms)
{
	char *text = admin_text("a\\b\n\xc3\xbc\xff");

	ck_assert_str_eq(text, "a\\x5cb\\x0a\xc3\xbc\\xff");
	free(text);
}
END_TEST

START_TEST(refused)
{
	static const char *const texts[] = {"\\",    "a\\",   "\\x",  "\\x0", "\\x00", "\\xg0",
					    "\\x0g", "\\X41", "\\\\", "\\n",  "\\xFF"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_assert_msg(admin_bytes(texts[i]) == NULL, "%s", texts[i]);
}
END_TEST

TEST_MAIN("administration of a store: text", all_pairs, forms, refused)
