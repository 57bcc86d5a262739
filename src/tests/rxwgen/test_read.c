/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the front end: the tree that xg_read() builds from valid input. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rxwgen/xg.h"
#include "tests/asserts.h"

static char folder[64], *messages;
static size_t message_length;
static struct xg_options options;
static struct xg_file *file;

static void setup(void)
{
	strcpy(folder, "/tmp/rxwgen-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	memset(&options, 0, sizeof(options));
	options.prefix = "";
}

static void forget(void)
{
	xg_file_free(file);
	file = NULL;
	free(messages);
	messages = NULL;
}

static void teardown(void)
{
	char *command;

	forget();
	ck_assert_int_gt(asprintf(&command, "rm -rf '%s'", folder), 0);
	ck_assert_int_eq(system(command), 0);
	free(command);
}

static void put(const char *name, const char *text)
{
	char path[256], *slash;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	slash = strrchr(path, '/');
	*slash = '\0';
	mkdir(path, 0700);
	*slash = '/';
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

/* True if the text is valid; the results are `file` and `messages`. */
static bool try_for(enum xg_output output, const char *text)
{
	char path[256];

	forget();
	put("main.xg", text);
	snprintf(path, sizeof(path), "%s/main.xg", folder);
	options.messages = open_memstream(&messages, &message_length);
	file = xg_read(path, &options, output);
	fclose(options.messages);
	return file != NULL;
}

static void read_text(const char *text)
{
	if (!try_for(XG_HEADER, text))
		ck_abort_msg("%s\nis rejected: %s", text, messages);
	if (*messages)
		ck_abort_msg("%s\nwarns: %s", text, messages);
}

static const struct xg_type *type(const char *name)
{
	for (size_t i = 0; i < file->type_count; i++)
		if (!strcmp(file->types[i]->name, name))
			return file->types[i];
	ck_abort_msg("no type %s", name);
}

static const struct xg_proc *proc(const char *name)
{
	for (size_t i = 0; i < file->item_count; i++)
		if (file->items[i].kind == XG_ITEM_PROC && !strcmp(file->items[i].proc->name, name))
			return file->items[i].proc;
	ck_abort_msg("no procedure %s", name);
}

static const struct xg_item *constant(const char *name)
{
	for (size_t i = 0; i < file->item_count; i++)
		if (file->items[i].kind == XG_ITEM_CONST && !strcmp(file->items[i].name, name))
			return &file->items[i];
	return NULL;
}

static const char *value(const char *name)
{
	const struct xg_item *item = constant(name);

	return item ? item->text : "none";
}

/* All items as one line of text. */
static const char *all_items(void)
{
	static char text[4096];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < file->item_count; i++) {
		const struct xg_item *item = &file->items[i];

		switch (item->kind) {
		case XG_ITEM_CONST:
			n += (size_t)sprintf(text + n, "|%s=%s", item->name, item->text);
			break;
		case XG_ITEM_TYPE:
			n += (size_t)sprintf(text + n, "|type %s", item->type->name);
			break;
		case XG_ITEM_PROC:
			n += (size_t)sprintf(text + n, "|proc %s", item->proc->name);
			break;
		case XG_ITEM_PACKAGE:
			n += (size_t)sprintf(text + n, "|package %s", item->package->name);
			break;
		case XG_ITEM_LINE:
			n += (size_t)sprintf(text + n, "|%%%s", item->text);
			break;
		case XG_ITEM_HEADER:
			n += (size_t)sprintf(text + n, "|header %s", item->text);
			break;
		}
	}
	return text;
}

START_TEST(conditions)
{
	static const struct {
		const char *text;
		bool value;
	} table[] = {
		{"1", true},
		{"0", false},
		{"-1", true},
		{"0x10 == 16", true},
		{"1u == 1UL", true},
		{"UNKNOWN", false},
		{"struct", false},
		{"ONE", true},
		{"EMPTY 1", true},
		{"defined ONE", true},
		{"defined(ONE)", true},
		{"defined ( EMPTY )", true},
		{"!defined(NONE)", true},
		{"defined NONE || defined ONE", true},
		{"defined NONE && defined ONE", false},
		{"1 || 0 && 0", true},
		{"(1 || 0) && 0", false},
		{"!0 == 1", true},
		{"!(0 == 1)", true},
		{"!!0", false},
		{"2 < 3", true},
		{"3 <= 3", true},
		{"2 > 3", false},
		{"3 >= 4", false},
		{"3 != 4", true},
		{"1 < 2 == 1", true},
		{"0 && 1 / 0", false},
		{"1 || 1 % 0", true},
		{"0 && (1 || 1 / 0)", false},
		{"TWICE(2) == 4 && TWICE (FOUR) == 8", true},
		{"TWICE", false},
		{"defined TWICE && defined(TWICE)", true},
		{"LATE == 7", true},
		{"SELF == 0", true},
		{"FOUR > THREE && THREE < FOUR", true},
		{"RPC_HDR == 1 /* in the header's run */", true},
		{"RPC_XDR", false},
		{"\\\n1", true},
		{"/* over\n lines */ 1", true},
	};
	char text[1024];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		snprintf(text, sizeof(text),
			 "#define ONE 1\n#define EMPTY\n#define LATE EARLY\n#define EARLY 7\n"
			 "#define SELF SELF\n#define THREE 3\n#define FOUR (4)\n"
			 "#define TWICE(x) ((x) + x)\n"
			 "#if %s\nconst a = 1;\n#else\nconst a = 0;\n#endif\n"
			 "#if 0\n#elif %s\nconst b = 1;\n#elif 1\nconst b = 0;\n#endif\n",
			 table[i].text, table[i].text);
		read_text(text);
		ck_assert_msg(!strcmp(value("a"), table[i].value ? "1" : "0"), "%s", table[i].text);
		ck_assert_str_eq(value("b"), value("a"));
	}
}
END_TEST

/* Constant expressions: in `const`, where their value is written, and in #if. */
START_TEST(expressions)
{
	static const struct {
		const char *text;
		int64_t value;
	} table[] = {
		{"1 + 2 * 3", 7},
		{"(1 + 2) * 3", 9},
		{"7 - 2 - 1", 4},
		{"7-2", 5},
		{"-7 / 2", -3},
		{"-7 % 2", -1},
		{"7 % 4 * 2", 6},
		{"1 << 4 + 1", 32},
		{"-8 >> 1", -4},
		{"-1 >> 63", -1},
		{"-1 << 63", INT64_MIN},
		{"1 << 62", INT64_C(4611686018427387904)},
		{"0xff & 0x0f | 0x100", 0x10f},
		{"6 ^ 3 & 1", 7},
		{"~0", -1},
		{"- - 3", 3},
		{"+-~1", 2},
		{"9223372036854775807 - 1", INT64_MAX - 1},
		{"-9223372036854775807 - 1", INT64_MIN},
		{"(-9223372036854775807 - 1) % -1", 0},
		{"K * K", 9},
		{"V - K", 4},
		{"S / 2", 5},
		{"0 / 5", 0},
	};
	char text[512], number[32];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		snprintf(text, sizeof(text),
			 "const K = 3;\nenum e { V = 7 };\n%%#define S 10\nconst a = %s;\n"
			 "const b = (%s);\n",
			 table[i].text, table[i].text);
		read_text(text);
		ck_assert_msg(constant("a")->number && constant("a")->value == table[i].value,
			      "%s is %jd", table[i].text, (intmax_t)constant("a")->value);
		snprintf(number, sizeof(number), "%jd", (intmax_t)table[i].value);
		if (table[i].value == INT64_MIN)
			strcpy(number, "-9223372036854775807 - 1");
		ck_assert_str_eq(value("b"), number);
		if (strpbrk(table[i].text, "KVS"))
			continue;
		snprintf(text, sizeof(text), "#if (%s) == (%s)\nconst a = 1;\n#endif\n",
			 table[i].text, number);
		read_text(text);
		ck_assert_msg(!strcmp(value("a"), "1"), "#if %s", table[i].text);
	}
	/* A single number or name remains as written; expressions are valid in each place. */
	read_text("const A = 0x10;\nconst B = A;\nconst C = A / 2;\n"
		  "enum e { D = A + 1, E, F = -E };\n"
		  "struct s { int x1[A * 2]; int x2<A >> 1>; int x3<A>; opaque x4<(A)>; };\n"
		  "union w switch (int d) { case A - 1: void; case -A: void; };\n"
		  "package P_\nstatindex A * 4\nG(IN string x5<A<<1>) = A | 1;\n"
		  "package Q_\nstartingopcode A % 3\nH();\n");
	ck_assert_str_eq(value("A"), "0x10");
	ck_assert_str_eq(value("B"), "A");
	ck_assert_str_eq(value("C"), "8");
	ck_assert_int_eq(type("e")->values[1].value, 18);
	ck_assert_int_eq(type("e")->values[2].value, -18);
	ck_assert_uint_eq(type("s")->members[0].bound, 32);
	ck_assert_str_eq(type("s")->members[0].bound_text, "32");
	ck_assert_uint_eq(type("s")->members[1].bound, 8);
	ck_assert_str_eq(type("s")->members[2].bound_text, "A");
	ck_assert_uint_eq(type("s")->members[3].bound, 16);
	ck_assert_int_eq(type("w")->arms[0].value, 15);
	ck_assert_int_eq(type("w")->arms[1].value, -16);
	ck_assert_uint_eq(proc("G")->package->statindex, 64);
	ck_assert_int_eq(proc("G")->opcode, 17);
	ck_assert_uint_eq(proc("G")->params[0].decl.bound, 32);
	ck_assert_int_eq(proc("H")->opcode, 1);
}
END_TEST

START_TEST(hyper_is_a_type_and_a_name)
{
	const struct xg_decl *m;

	read_text("struct s { hyper a; unsigned hyper b; unsigned hyper; hyper c<3>; };\n"
		  "struct t { unsigned hyper[3]; int x; };\nstruct w { hyper hyper; };\n"
		  "typedef unsigned hyper big;\ntypedef unsigned hyper *maybe;\n"
		  "package P_\nF(IN hyper hyper, unsigned hyper *x) = 1;\n");
	m = type("s")->members;
	ck_assert(m[0].kind == XG_INT64 && m[1].kind == XG_UINT64);
	ck_assert(m[2].kind == XG_UINT && !strcmp(m[2].name, "hyper"));
	ck_assert(m[3].kind == XG_INT64 && m[3].shape == XG_COUNTED);
	ck_assert(type("t")->members[0].kind == XG_UINT);
	ck_assert_uint_eq(type("t")->members[0].bound, 3);
	ck_assert(type("w")->members[0].kind == XG_INT64);
	ck_assert(type("big")->alias.kind == XG_UINT64);
	ck_assert(type("maybe")->alias.kind == XG_UINT64);
}
END_TEST

START_TEST(bool_cases)
{
	read_text("union a switch (bool b) { case TRUE: int i; case FALSE: void; };\n"
		  "enum e { TRUE = 0, FALSE = 1 };\n"
		  "union c switch (bool b) { case TRUE: int i; default: void; };\n");
	ck_assert_int_eq(type("a")->arms[0].value, 1);
	ck_assert_int_eq(type("a")->arms[1].value, 0);
	ck_assert_str_eq(type("a")->arms[0].text, "TRUE");
	/* A definition of the user takes precedence. */
	ck_assert_int_eq(type("c")->arms[0].value, 0);
}
END_TEST

START_TEST(branches)
{
	read_text(
		"#ifdef A\nconst a = 1;\n# ifdef B\nconst b = 1;\n# else\nconst b = 2;\n#\tendif\n"
		"#else\n  #  ifndef B\nconst c = 1;\n#endif B\n#endif /* A */\n");
	ck_assert_str_eq(all_items(), "|c=1");
	/* In excluded text only conditional directives, comments and strings must be valid. */
	read_text("#if 0\n#if (\n#elif )\n#else\n#endif\n#nonsense\n$ \"/*\"\n\"\n/*\n#endif\n*/\n"
		  "%#endif\n#elif 1\nconst a = 1;\n#elif (\n#else\nconst b = 1;\n#endif\n");
	ck_assert_str_eq(all_items(), "|a=1");
	read_text("#ifdef RPC_HDR\n%h\n#endif\n#ifdef RPC_CLIENT\n%c\n#endif\n");
	ck_assert_str_eq(all_items(), "|%h");
	ck_assert(
		try_for(XG_CLIENT, "#ifdef RPC_HDR\n%h\n#endif\n#ifdef RPC_CLIENT\n%c\n#endif\n"));
	ck_assert_str_eq(all_items(), "|%c");
	read_text("struct s {\n#if 0\n\tint a;\n#else\n\tint b;\n#endif\n};\n");
	ck_assert_str_eq(type("s")->members[0].name, "b");
}
END_TEST

START_TEST(macros)
{
	read_text("#define NAME number\n#define VALUE 1\nconst NAME = VALUE;\n"
		  "const text = \"VALUE /* NAME */\";\n");
	ck_assert_str_eq(all_items(), "|number=1|text=\"VALUE /* NAME */\"");
	read_text("#define A B\n#define B A\n#define C A = 3;\nconst C\n");
	ck_assert_str_eq(all_items(), "|A=3");
	read_text("#define ALL struct s { int /* c */ x; \\\n int y; }\nALL;\n#undef ALL\n"
		  "const ALL = 1;\n");
	ck_assert_uint_eq(type("s")->member_count, 2);
	read_text("#define EMPTY\nEMPTY const EMPTY a EMPTY = EMPTY 1 EMPTY ; EMPTY\n");
	ck_assert_str_eq(all_items(), "|a=1");
	/* % lines: names are replaced, except in strings, comments and numbers. */
	read_text("#define X y z\n#define Z X\n"
		  "%X XX X1 1X 0xX _X X.X \"X \\\" X\" 'X' /* X */ X Z\n"
		  "%#define X X\n%it's X\n% /* X\n% X */ X\n%\nconst X2 = 1;\n");
	ck_assert_str_eq(all_items(),
			 "|%y z XX X1 1X 0xX _X y z.y z \"X \\\" X\" 'X' /* X */ y z y z"
			 "|%#define y z y z|%it's X|% /* X|% X */ y z|%|X2=1");
}
END_TEST

START_TEST(macros_with_parameters)
{
	read_text(
		"#define SAME(x) x\n#define ALIAS SAME\n#define MAX(a, b) ((a) * (b))\n"
		"#define TYPE( t,n ) struct n { t m; }\n#define NONE() 7\n#define SELF(x) SELF(x)\n"
		"const a = SAME(SAME(SAME(1)));\nconst b = ALIAS /* c */ (2);\n"
		"const c = MAX(3, MAX(2, (1 + 2)));\nTYPE(int, s);\n"
		"TYPE(\n SAME(short), /* c , ) */\n t) ;\nconst d = NONE ( );\n"
		"const SAME = 5;\nconst e = \"SAME(1)\";\nconst f = SAME(\"),\");\n"
		"%SAME MAX(a, \"b,)\") SAME( SAME(3) ) SELF(SELF(1)) NONE\n");
	ck_assert_str_eq(all_items(),
			 "|a=1|b=2|c=18|type s|type t|d=7|SAME=5|e=\"SAME(1)\"|f=\"),\""
			 "|%SAME ((a) * (\"b,)\")) 3 SELF(SELF(1)) NONE");
	ck_assert_int_eq(type("t")->members[0].kind, XG_SHORT);
	/* A macro is not expanded within its own expansion. */
	read_text("#define A B\n#define B A\n#define F(x) const x = 1\nF(A);\n");
	ck_assert_str_eq(all_items(), "|A=1");
}
END_TEST

START_TEST(command_line)
{
	static const struct xg_macro_option list[] = {
		{false, "A"},	{false, "B=3"}, {false, "C="},	{true, "A"},
		{false, "D=x"}, {true, "D"},	{false, "D=4"},
	};

	options.macros = list;
	options.macro_count = sizeof(list) / sizeof(list[0]);
	read_text("#ifdef A\nconst a = A;\n#endif\nconst b = B C;\nconst d = D;\n");
	ck_assert_str_eq(all_items(), "|b=3|d=4");
}
END_TEST

START_TEST(lines)
{
	char *text;

	read_text("const a = 1;\r\nconst b = 2;\r\n%x\r\n");
	ck_assert_str_eq(all_items(), "|a=1|b=2|%x");
	read_text("const a = 1;");
	ck_assert_str_eq(all_items(), "|a=1");
	ck_assert(!try_for(XG_HEADER, "const a = 1\r"));
	read_text("");
	ck_assert_uint_eq(file->item_count, 0);
	read_text("%x");
	ck_assert_str_eq(all_items(), "|%x");
	text = malloc(70000);
	memset(text, ' ', 70000);
	strcpy(text + 65536 - 13, "const a = 1;\n");
	read_text(text);
	ck_assert_str_eq(all_items(), "|a=1");
	free(text);
	/* Neither is special in a comment. */
	read_text("/*\n#define A 1\n%line\n#if\n*/\nconst A = 2;\n");
	ck_assert_str_eq(all_items(), "|A=2");
	/* '%' must be in the first column; '#' may follow blanks and comments. */
	ck_assert(!try_for(XG_HEADER, " %x\n"));
	read_text("  # define A 1\n/* c */ #define B 2\nconst a = A;\nconst b = B;\n");
	ck_assert_str_eq(all_items(), "|a=1|b=2");
	read_text("#\n# pragma once\n#pragma\n");
}
END_TEST

/* % lines keep their position among the definitions; those within one move before it. */
START_TEST(line_places)
{
	read_text("%one\nstruct s {\n%two\n\tint x;\n};\n%three\npackage P_\n%four\nstatindex 3\n"
		  "%five\nF(\n%six\n) = 1;\n%seven\n");
	ck_assert_str_eq(all_items(),
			 "|%one|%two|type s|%three|package P_|%four|%five|%six|proc F|%seven");
}
END_TEST

START_TEST(includes)
{
	const char *folders[2];
	char one[128], two[128];

	snprintf(one, sizeof(one), "%s/one", folder);
	snprintf(two, sizeof(two), "%s/two/", folder);
	put("sub/a.xg", "const a = 1;\n#include \"b.xg\"\n");
	put("sub/b.xg", "const b = 1;\n");
	put("b.xg", "const b = 2;\n");
	put("one/c.xg", "const c = 1;\n#include <b.xg>\n");
	put("one/b.xg", "const b = 1;\n");
	put("two/c.xg", "const c = 2;\n");
	put("two/d.xg", "const d = 2;\n");
	options.folders = folders;
	options.folder_count = 2;
	folders[0] = one;
	folders[1] = two;
	read_text("#include \"sub/a.xg\"\n#include <c.xg>\n#include <d.xg>\n");
	ck_assert_str_eq(all_items(), "|a=1|b=1|c=1|d=2");
	ck_assert_uint_eq(file->input_count, 6);
	ck_assert_str_eq(strrchr(file->inputs[0], '/'), "/main.xg");
	ck_assert_ptr_nonnull(strstr(file->inputs[1], "/sub/a.xg"));
	ck_assert_ptr_nonnull(strstr(file->inputs[5], "/two/d.xg"));
	/* A definition may extend beyond the end of a file. A guard prevents a second reading. */
	put("begin.xg", "#ifndef G\n#define G\nstruct s { int x;\n#endif\n");
	read_text("#include \"begin.xg\"\n#include \"begin.xg\"\n};\n");
	ck_assert_str_eq(all_items(), "|type s");
}
END_TEST

START_TEST(compiled_by_itself)
{
	options.skip_included = true;
	put("common.xg", "#include \"base.xg\"\n#define MACRO 5\n%#define SIZE 9\nconst A = 1;\n"
			 "struct t { int x[BASE]; };\npackage Q_\nG(IN int q<3>) = 1;\n");
	put("base.xg", "const BASE = 3;\n");
	put("numbers.h", "#define NUMBER 7\n%from a header\n");
	read_text("#include \"common.xg\"\n#include \"common.xg\"\n#include \"base.xg\"\n"
		  "#include \"numbers.h\"\nstruct s { t y; int z[SIZE]; };\npackage P_\n"
		  "F(INOUT t *x, q *z) = MACRO;\nH() = NUMBER;\n");
	ck_assert_str_eq(all_items(),
			 "|header common.h|%from a header|type s|package P_|proc F|proc H");
	ck_assert(type("t")->included);
	ck_assert(type("q")->included);
	ck_assert(!type("s")->included);
	ck_assert_uint_eq(type("s")->members[1].bound, 9);
	ck_assert_uint_eq(file->package_count, 1);
	ck_assert_uint_eq(file->type_count, 3);
	/* A package does not extend beyond such a file. */
	ck_assert(!try_for(XG_HEADER, "#include \"common.xg\"\nF() = 5;\n"));
	/* The package of the including file continues after it. */
	read_text("package P_\nF(IN int x) = 1;\n#include \"common.xg\"\nG() = 2;\n");
	ck_assert_str_eq(proc("G")->package->name, "P_");
}
END_TEST

START_TEST(markers)
{
	read_text("#line 100 \"real.x\"\nconst a = 1;\nstruct s { int x; };\n# 7\n"
		  "struct t {\n int y; };\n");
	ck_assert_str_eq(type("s")->place.file, "real.x");
	ck_assert_uint_eq(type("s")->place.line, 101);
	ck_assert_uint_eq(type("s")->place.column, 8);
	ck_assert_str_eq(type("t")->place.file, "real.x");
	ck_assert_uint_eq(type("t")->members[0].place.line, 8);
	ck_assert_uint_eq(type("t")->members[0].place.column, 6);
}
END_TEST

START_TEST(comments)
{
	const struct xg_type *s;

	read_text(
		"/* about the file */\n/* and its licence */\n\n"
		"/* of A */\nconst A = 1;\nconst B = 2;\t/* of B */\n/* section */\n"
		"const C = 3; /* of C */\n\n/* of nobody */\n\nconst D = 4;\n"
		"/**\n * of s,\n *   in two lines /* and marks\n **/\nstruct s { /* not this */\n"
		"\t/* of x */\n\tint x;\n\tint y; /* of y,\n\t\tlonger */\n\tint z;\n"
		"\t/* before */ int w; /* behind */\n};\nstruct t { /* of t */\n int x; };\n"
		"enum e { E, /* of E */\n/* of F */\nF,\nG /* of G */\n};\n"
		"union u switch (int d) {\ncase 1: /* arm */\n\tint i; /* of i */\n"
		"/* of default */\ndefault: void;\n};\n"
		"typedef int a<3>; /* of a */\n/* of line */\n%line\n"
		"package P_ /* of P */\n/* of F */\nF(IN int x,\t/* of nothing */\n\tint y) = 1;\n"
		"proc G() = 2; /* of G */\n");
	ck_assert_str_eq(constant("A")->doc, "of A");
	ck_assert_str_eq(constant("B")->doc, "of B");
	ck_assert_str_eq(constant("C")->doc, "of C");
	ck_assert_str_eq(constant("C")[-1].text, "/* section */");
	ck_assert_ptr_null(constant("D")->doc);
	s = type("s");
	ck_assert_str_eq(s->doc, "of s,\n  in two lines / * and marks");
	ck_assert_str_eq(s->members[0].doc, "of x");
	ck_assert_str_eq(s->members[1].doc, "of y,\nlonger");
	ck_assert_ptr_null(s->members[2].doc);
	ck_assert_str_eq(s->members[3].doc, "behind");
	ck_assert_str_eq(type("t")->doc, "of t");
	s = type("e");
	ck_assert_str_eq(s->values[0].doc, "of E");
	ck_assert_str_eq(s->values[1].doc, "of F");
	ck_assert_str_eq(s->values[2].doc, "of G");
	ck_assert_str_eq(type("u")->arms[0].decl.doc, "of i");
	ck_assert_str_eq(type("u")->arms[1].decl.doc, "of default");
	ck_assert_str_eq(type("a")->doc, "of a");
	ck_assert_str_eq(proc("F")->doc, "of F");
	ck_assert_str_eq(proc("G")->doc, "of G");
	for (size_t i = 0; i < file->item_count; i++) {
		if (file->items[i].kind == XG_ITEM_PACKAGE)
			ck_assert_str_eq(file->items[i].doc, "of P");
		if (file->items[i].kind == XG_ITEM_LINE && !strcmp(file->items[i].text, "line"))
			ck_assert_str_eq(file->items[i].doc, "of line");
	}
	read_text("\n/*\n * two\n *\n *  * lines\n */\nconst A = 1; /* a */\n");
	ck_assert_str_eq(all_items(), "|%/*\n * two\n *\n *  * lines\n */|A=1");
	/* Only the header has the comment of a group of constants. */
	ck_assert(try_for(XG_XDR, "\n/* section */\nconst C = 3; /* of C */\n"));
	ck_assert_str_eq(all_items(), "|C=3");
}
END_TEST

START_TEST(sizes)
{
	static const struct {
		const char *text;
		uint64_t wire_min, wire_size, c_size;
		bool owns;
	} table[] = {
		{"int x", 4, 4, 4, false},
		{"afs_int32 x", 4, 4, 4, false},
		{"afs_uint32 x", 4, 4, 4, false},
		{"unsigned x", 4, 4, 4, false},
		{"unsigned int x", 4, 4, 4, false},
		{"unsigned afs_int32 x", 4, 4, 4, false},
		{"unsigned afs_int32 int x", 4, 4, 4, false},
		{"afs_int32 int x", 4, 4, 4, false},
		{"long x", 4, 4, 4, false},
		{"u_long x", 4, 4, 4, false},
		{"u_int x", 4, 4, 4, false},
		{"short x", 4, 4, 2, false},
		{"short int x", 4, 4, 2, false},
		{"unsigned short int x", 4, 4, 2, false},
		{"u_short x", 4, 4, 2, false},
		{"char x", 4, 4, 1, false},
		{"unsigned char x", 4, 4, 1, false},
		{"u_char x", 4, 4, 1, false},
		{"bool x", 4, 4, 1, false},
		{"afs_int64 x", 8, 8, 8, false},
		{"afs_uint64 x", 8, 8, 8, false},
		{"afs_time64 x", 8, 8, 8, false},
		{"struct afs_time64 x", 8, 8, 8, false},
		{"float x", 4, 4, 4, false},
		{"double x", 8, 8, 8, false},
		{"afsUUID x", 44, 44, 16, false},
		{"enum e x", 4, 4, 4, false},
		{"struct pair x", 8, 8, 8, false},
		{"char x[65]", 260, 260, 65, false},
		{"opaque x[5]", 8, 8, 5, false},
		{"opaque x<5>", 4, 0, 16, true},
		{"string x<5>", 4, 0, 8, true},
		{"int x<5>", 4, 0, 16, true},
		{"pair x[3]", 24, 24, 24, false},
		{"pair *x", 4, 0, 8, true},
		{"text x[3]", 12, 0, 24, true},
		{"mixed x", 16, 16, 24, false},
		{"same x", 12, 12, 16, false},
		{"other x", 4, 0, 16, false},
		{"own x", 4, 0, 16, true},
		{"mine x", 4, 4, 4, true},
	};
	char text[1024];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct xg_decl *d;

		snprintf(text, sizeof(text),
			 "enum e { A };\nstruct pair { int a; int b; };\ntypedef string text<9>;\n"
			 "struct mixed { char a; afs_int64 b; short c; };\n"
			 "union same switch (int d) { case 1: double x; case 2: pair y; };\n"
			 "union other switch (e d) { case A: double x; default: void; };\n"
			 "union own switch (bool d) { case 0: text x; case 1: void; };\n"
			 "customized struct mine { int x; };\nstruct s { %s; };\n",
			 table[i].text);
		read_text(text);
		d = &type("s")->members[0];
		ck_assert_msg(d->wire_min == table[i].wire_min &&
				      d->wire_size == table[i].wire_size &&
				      d->c_size == table[i].c_size && d->owns == table[i].owns,
			      "%s: %ju %ju %ju %d", table[i].text, (uintmax_t)d->wire_min,
			      (uintmax_t)d->wire_size, (uintmax_t)d->c_size, d->owns);
		ck_assert_uint_eq(type("s")->wire_min, d->wire_min);
		ck_assert_uint_eq(type("s")->wire_size, d->wire_size);
	}
	ck_assert_uint_eq(type("mixed")->c_size, 24);
}
END_TEST

START_TEST(lists_and_cycles)
{
	read_text("typedef struct e *elist;\nstruct e { int x; elist next; };\n"
		  "struct head { elist l; };\n"
		  "struct d { int x; struct d *next; };\n"
		  "struct tree { tree *left; int x; };\n"
		  "struct both { both *other; both *next; };\n"
		  "struct a { struct b *x; int y; };\nunion b switch (int d) { case 1: a *z; };\n"
		  "struct uses { b x<4>; };\ntypedef struct uv *vp;\nstruct uv { vp kids<3>; };\n");
	ck_assert(type("e")->list && !type("e")->recursive);
	ck_assert(!type("elist")->list && !type("elist")->recursive);
	ck_assert(!type("head")->list && !type("head")->recursive);
	ck_assert(type("d")->list && !type("d")->recursive);
	ck_assert(!type("tree")->list && type("tree")->recursive);
	ck_assert(type("both")->list && type("both")->recursive);
	ck_assert(!type("a")->list && type("a")->recursive);
	ck_assert(!type("b")->list && type("b")->recursive);
	ck_assert(!type("uses")->recursive);
	ck_assert(type("uv")->recursive && type("vp")->recursive);
	/* Cycles of three types, and through typedefs of typedefs. */
	read_text("struct a { struct b *x; int i; };\nstruct b { struct c *y; int i; };\n"
		  "struct c { a *z; int i; };\nstruct d { a only; };\n"
		  "typedef struct e *ep;\ntypedef ep epp;\ntypedef epp eppp;\n"
		  "struct e { int x; eppp next; };\n");
	ck_assert(type("a")->recursive && type("b")->recursive && type("c")->recursive);
	ck_assert(!type("d")->recursive);
	ck_assert(type("e")->list && !type("e")->recursive);
}
END_TEST

START_TEST(bounds)
{
	static const char *limits[] = {"listed=12", "s.own=13", "F.arg=14"};

	options.limits = limits;
	options.limit_count = 3;
	read_text(
		"const C = 0x10;\nenum e { V = 7 };\n%#define D 256\n% # define E (0x20U) /* c */\n"
		"%#define F E\n%#define G(x) 9\n#ifdef RPC_XDR\n%#define H 77\n#endif\n"
		"#define M 5\n"
		"struct s { int a[C]; int b<V>; string c<D>; opaque d[E]; int e[F]; int h[H];\n"
		"  int m[M];\n"
		"  string t<>; opaque o<>; int i<>; int own<>; string big<2147483647>; };\n"
		"struct large { int x[1000]; };\n"
		"typedef int listed<>;\ntypedef large many<2147483647>;\npackage P_\n"
		"F(OUT s *x, IN opaque arg<>) = 1;\n");
	const struct xg_decl *m = type("s")->members;
	static const uint32_t expected[] = {16, 7,	 256,	  32,	 32, 77,
					    5,	1048576, 1048576, 65536, 13, 2147483646};

	for (size_t i = 0; i < type("s")->member_count; i++)
		ck_assert_msg(m[i].bound == expected[i], "%s: %u", m[i].name, m[i].bound);
	ck_assert_str_eq(m[0].bound_text, "C");
	ck_assert_str_eq(m[6].bound_text, "5");
	ck_assert_ptr_null(m[7].bound_text);
	ck_assert_uint_eq(type("listed")->alias.bound, 12);
	ck_assert_uint_eq(type("many")->alias.bound, 2147483647u / 4000);
	ck_assert_uint_eq(type("arg")->alias.bound, 14);
}
END_TEST

START_TEST(unbounded_is_warned_of)
{
	const char *text = "typedef int l<>;\npackage P_\nF(IN l *x, string y<>, OUT l *z) = 1;\n";

	ck_assert(!try_for(XG_HEADER, text));
	options.warn_unbounded = true;
	ck_assert(try_for(XG_HEADER, text));
	ck_assert_ptr_nonnull(strstr(messages, "main.xg:3:9: warning: 'x'"));
	ck_assert_ptr_nonnull(strstr(messages, "main.xg:3:19: warning: 'y'"));
	ck_assert_ptr_null(strstr(messages, "'z'"));
}
END_TEST

START_TEST(opcodes)
{
	const struct xg_package *p;

	read_text(
		"#define TEN 10\nconst HEX = 0x20;\npackage P_\nA() = TEN;\nB() = HEX;\nC() = 0;\n"
		"D() = 2147483647;\npackage Q_\nE();\nF();\npackage R_\nG();\npackage S_\n"
		"startingopcode 50\n"
		"H();\nI();\npackage T_\nJ() = 50;\nK() = 52;\nL() = 51;\n");
	ck_assert_int_eq(proc("A")->opcode, 10);
	ck_assert_int_eq(proc("B")->opcode, 32);
	ck_assert_int_eq(proc("D")->opcode, 2147483647);
	ck_assert_int_eq(proc("E")->opcode, 0);
	ck_assert_int_eq(proc("F")->opcode, 1);
	ck_assert_int_eq(proc("G")->opcode, 2);
	ck_assert_int_eq(proc("H")->opcode, 50);
	ck_assert_int_eq(proc("I")->opcode, 51);
	ck_assert_uint_eq(file->package_count, 5);
	p = file->packages[0];
	ck_assert_uint_eq(p->proc_count, 4);
	ck_assert(p->lowest == 0 && p->highest == 2147483647 && !p->dense);
	p = file->packages[4];
	ck_assert(p->lowest == 50 && p->highest == 52 && p->dense);
	ck_assert_uint_eq(proc("L")->index, 2);
	ck_assert_ptr_eq(p->procs[2], proc("L"));
	ck_assert_ptr_eq(proc("L")->package, p);
}
END_TEST

START_TEST(directions)
{
	const struct xg_param *params;
	const struct xg_proc *p;

	read_text("struct t { int x; };\nprefix S\npackage P_\nstatindex 7\n"
		  "A(IN int a, t *b, OUT t *c, INOUT string d<4>) split = 1;\n"
		  "proc B Own(t *e) multi = 2;\nprefix\nQ splitprefix IN=Begin OUT = Finish ;\n"
		  "C(IN char f[3], int g<5>, opaque h<6>) = 3;\nD(OUT int g<5>) = 4;\n"
		  "proc () = 5;\n");
	p = proc("A");
	params = p->params;
	ck_assert_uint_eq(p->param_count, 4);
	ck_assert(params[0].direction == XG_IN && params[1].direction == XG_IN);
	ck_assert(params[2].direction == XG_OUT && params[3].direction == XG_INOUT);
	ck_assert(!params[0].starred && params[1].starred && params[2].starred);
	ck_assert_uint_eq(params[1].decl.wire_size, 4);
	ck_assert(p->split && !p->multi);
	ck_assert_str_eq(p->prefix, "S");
	ck_assert_str_eq(p->start, "Start");
	ck_assert_str_eq(p->end, "End");
	ck_assert_ptr_null(p->own_stub);
	ck_assert(p->package->has_statindex && p->package->statindex == 7);
	p = proc("B");
	ck_assert_str_eq(p->own_stub, "Own");
	ck_assert(p->multi && p->params[0].direction == XG_INOUT);
	p = proc("C");
	ck_assert_str_eq(p->prefix, "Q");
	ck_assert_str_eq(p->start, "Begin");
	ck_assert_str_eq(p->end, "Finish");
	params = p->params;
	ck_assert(params[0].decl.shape == XG_FIXED);
	ck_assert(params[1].decl.kind == XG_NAMED && params[1].decl.shape == XG_ONE);
	ck_assert_ptr_eq(params[1].decl.type, type("g"));
	ck_assert(type("g")->parameter && type("g")->what == XG_TYPEDEF);
	ck_assert(type("g")->alias.shape == XG_COUNTED && type("g")->alias.bound == 5);
	ck_assert(type("h")->alias.kind == XG_OPAQUE);
	ck_assert_ptr_eq(proc("D")->params[0].decl.type, type("g"));
	ck_assert_str_eq(proc("")->name, "");
	ck_assert_str_eq(all_items(), "|type t|package P_|proc A|proc B|type g|type h|proc C|proc D"
				      "|proc ");
}
END_TEST

START_TEST(enums_and_unions)
{
	const struct xg_type *t;

	read_text(
		"enum e { A, B, C = -3, D, E = 0x7fffffff, F = B };\n"
		"union u switch (e d) { case A: int x; case B: void; case 7: string s<3>;\n"
		"  default: e z; };\n"
		"union uv switch (unsigned d) { case 4294967295: void; default: void; };\n"
		"const X = E;\nconst Y = -1;\nconst Y = -1;\nconst T = \"text\";\nconst U = T;\n");
	t = type("e");
	ck_assert_uint_eq(t->value_count, 6);
	ck_assert_int_eq(t->values[0].value, 0);
	ck_assert_int_eq(t->values[1].value, 1);
	ck_assert_int_eq(t->values[3].value, -2);
	ck_assert_int_eq(t->values[4].value, 2147483647);
	ck_assert_int_eq(t->values[5].value, 1);
	t = type("u");
	ck_assert_uint_eq(t->arm_count, 4);
	ck_assert_str_eq(t->discriminant.name, "d");
	ck_assert_ptr_eq(t->discriminant.type, type("e"));
	ck_assert_str_eq(t->arms[0].text, "A");
	ck_assert_int_eq(t->arms[1].value, 1);
	ck_assert(t->arms[1].decl.kind == XG_VOID && !t->arms[1].decl.name);
	ck_assert_ptr_null(t->arms[3].text);
	ck_assert_int_eq(type("uv")->arms[0].value, 4294967295);
	ck_assert_str_eq(value("X"), "E");
	ck_assert_str_eq(value("Y"), "-1");
	ck_assert_str_eq(value("T"), "\"text\"");
	ck_assert_str_eq(value("U"), "T");
}
END_TEST

/* Constructs of OpenAFS's files that the other tests do not use. */
START_TEST(customs_of_old_files)
{
	put("opcodes.h", "/*\n#define OLD 1\n*/\n#define GET 501 /* by id */\n#define PUT\t502\n");
	read_text("#include \"opcodes.h\"\n%#include <afs/stds.h>\n%#if defined(KERNEL)\n%int x;\n"
		  "%#endif\n"
		  "#ifdef RPC_CLIENT\n%static int debug;\n#endif RPC_CLIENT\n"
		  "struct s {\n#define LENGTH 30\n    char name[LENGTH];\n"
		  "    unsigned char use;\n};\n"
		  "special struct s name, use;\nspecial s name;\ncustomized struct c { int x; };\n"
		  "typedef opaque block[8];\nprefix S\npackage VL_\nstatindex 15\n"
		  "Get\n    (IN afs_int32 id,\n     OUT struct s *e) = GET;\n"
		  "proc Put (IN struct s *e) = PUT;\n"
		  "Move(INOUT block *b) multi=503;\nProbe() split=504;\n"
		  "package DISK_\nMove(INOUT block *b) = 503;\n");
	ck_assert_int_eq(proc("Put")->opcode, 502);
	ck_assert(type("c")->customized && type("c")->owns);
}
END_TEST

/* The tables are searched by bisection. */
/* Static functions of stubs for pools have names, too. */
START_TEST(names_of_stubs_for_pools)
{
	static const char clashes[] =
		"package K\nstruct run_KGet { long a; };\n"
		"struct collect_KGet { long a; };\nGet(IN long a) multi = 1;\n";

	read_text(clashes);
	options.pools = true;
	ck_assert(!try_for(XG_CLIENT, clashes));
	ck_assert_ptr_nonnull(
		strstr(messages, "'run_KGet' would be the C name of two definitions"));
	ck_assert_ptr_nonnull(strstr(messages, "'collect_KGet' would be the C name of two"));
}
END_TEST

START_TEST(reserved_names_are_found)
{
	size_t count = 0;

	for (; xg_reserved_name(count); count++)
		ck_assert_msg(xg_reserved_kind(xg_reserved_name(count)) != XG_RESERVED_NOT, "%s",
			      xg_reserved_name(count));
	ck_assert_uint_gt(count, 300);
	ck_assert_int_eq(xg_reserved_kind("class"), XG_RESERVED_KEYWORD);
	ck_assert_int_eq(xg_reserved_kind("EINVAL"), XG_RESERVED_MACRO);
	ck_assert_int_eq(xg_reserved_kind("memcpy"), XG_RESERVED_LIBRARY);
	ck_assert_int_eq(xg_reserved_kind("classes"), XG_RESERVED_NOT);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("rxwgen");
	TCase *t = tcase_create("read");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, conditions);
	tcase_add_test(t, expressions);
	tcase_add_test(t, hyper_is_a_type_and_a_name);
	tcase_add_test(t, bool_cases);
	tcase_add_test(t, branches);
	tcase_add_test(t, macros);
	tcase_add_test(t, macros_with_parameters);
	tcase_add_test(t, command_line);
	tcase_add_test(t, lines);
	tcase_add_test(t, line_places);
	tcase_add_test(t, includes);
	tcase_add_test(t, compiled_by_itself);
	tcase_add_test(t, markers);
	tcase_add_test(t, comments);
	tcase_add_test(t, sizes);
	tcase_add_test(t, lists_and_cycles);
	tcase_add_test(t, bounds);
	tcase_add_test(t, unbounded_is_warned_of);
	tcase_add_test(t, opcodes);
	tcase_add_test(t, directions);
	tcase_add_test(t, enums_and_unions);
	tcase_add_test(t, customs_of_old_files);
	tcase_add_test(t, names_of_stubs_for_pools);
	tcase_add_test(t, reserved_names_are_found);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
