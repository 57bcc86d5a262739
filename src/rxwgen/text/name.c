/* SPDX-License-Identifier: BSD-2-Clause */
/* The name table: each identifier of the input once, with its meanings. */
#include "rxwgen/text/name.h"

#include <stdlib.h>
#include <string.h>

#include "rxwgen/text/token.h"

void names_init(struct names *names, struct arena *arena)
{
	names->arena = arena;
	names->count = 0;
	names->slot_count = 1024;
	names->slots = arena_alloc(arena, names->slot_count * sizeof(struct name *));
	for (int kind = TOKEN_KEYWORDS; kind < TOKEN_KINDS; kind++) {
		const char *text = token_keyword(kind);

		names_get(names, text, strlen(text))->keyword = kind;
	}
}

/* FNV-1a. */
static uint32_t hash_name_text(const char *text, size_t length)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	return hash;
}

static void grow_name_slots(struct names *names)
{
	size_t count = names->slot_count * 4;
	struct name **slots = arena_alloc(names->arena, count * sizeof(struct name *)), *name;

	for (size_t i = 0; i < names->slot_count; i++)
		while ((name = names->slots[i])) {
			names->slots[i] = name->next;
			name->next = slots[name->hash % count];
			slots[name->hash % count] = name;
		}
	names->slots = slots;
	names->slot_count = count;
}

struct name *names_get(struct names *names, const char *text, size_t length)
{
	uint32_t hash = hash_name_text(text, length);
	struct name *name;

	for (name = names->slots[hash % names->slot_count]; name; name = name->next)
		if (name->hash == hash && name->length == length &&
		    !memcmp(name->text, text, length))
			return name;
	if (names->count++ > names->slot_count)
		grow_name_slots(names);
	name = arena_alloc(names->arena, sizeof(*name) + length + 1);
	name->hash = hash;
	name->length = (uint32_t)length;
	memcpy(name->text, text, length);
	name->next = names->slots[hash % names->slot_count];
	names->slots[hash % names->slot_count] = name;
	return name;
}

static int compare_c_words(const void *key, const void *word)
{
	return strcmp(key, *(const char *const *)word);
}

bool name_is_c_word(const char *text)
{
	/* Sorted. Keywords of the interface language are excluded: they are no names. */
	static const char *const words[] = {
		"_Alignas",	 "_Alignof",  "_Atomic",
		"_Bool",	 "_Complex",  "_Generic",
		"_Imaginary",	 "_Noreturn", "_Static_assert",
		"_Thread_local", "asm",	      "auto",
		"break",	 "continue",  "do",
		"else",		 "extern",    "false",
		"for",		 "goto",      "if",
		"inline",	 "int16_t",   "int32_t",
		"int64_t",	 "int8_t",    "register",
		"restrict",	 "return",    "signed",
		"sizeof",	 "static",    "true",
		"typeof",	 "uint16_t",  "uint32_t",
		"uint64_t",	 "uint8_t",   "volatile",
		"while",
	};

	return bsearch(text, words, sizeof(words) / sizeof(words[0]), sizeof(words[0]),
		       compare_c_words);
}

bool name_is_generated(const char *text)
{
	/* Sorted. */
	static const char *const words[] = {
		"base",	      "call",	   "code", "context", "entries", "functions",
		"handlers",   "interface", "len",  "name",    "service", "stat_index",
		"swap_errno", "to",	   "u",	   "xdr",
	};

	return bsearch(text, words, sizeof(words) / sizeof(words[0]), sizeof(words[0]),
		       compare_c_words);
}

bool name_is_local(const char *text)
{
	/* Sorted. */
	static const char *const words[] = {
		"at", "count", "i", "next", "opcode", "p", "room", "there", "v", "val", "x",
	};

	return bsearch(text, words, sizeof(words) / sizeof(words[0]), sizeof(words[0]),
		       compare_c_words);
}
