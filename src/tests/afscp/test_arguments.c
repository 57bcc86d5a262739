/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the command line of afscp: what -s means, and where the command of lock begins. */
#include "tests/tools/testing.h"
#include "afscp/arguments.h"
#include "afscp/place.h"
#include "afscp/run.h"

static const struct tools_option options[] = {
	{ .name = "server", .letter = 's', .kind = TOOLS_STRING },
	{ .name = "verbose", .letter = 'v', .kind = TOOLS_FLAG },
	{ .name = "timeout", .kind = TOOLS_DURATION },
};

/* Words of a line, which is changed; NULL behind the last one. */
static int split(char *line, char *words[32])
{
	int n = 0;

	for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
		words[n++] = word;
	words[n] = NULL;
	return n;
}

static void want(const char *given, const char *expected)
{
	char line[256], made[256] = "", *words[32];
	char **prepared;
	int count;

	snprintf(line, sizeof(line), "%s", given);
	count = split(line, words);
	prepared = arguments_prepare(options, sizeof(options) / sizeof(options[0]), &count, words);
	ck_assert_ptr_nonnull(prepared);
	for (int i = 0; i < count; i++) {
		strcat(made, i ? " " : "");
		strcat(made, prepared[i]);
	}
	ck_assert_ptr_null(prepared[count]);
	free(prepared);
	ck_assert_str_eq(made, expected);
}

START_TEST(unchanged)
{
	static const char *const lines[] = {
		"afscp",
		"afscp -s",
		"afscp -s fs get a:b c",
		"afscp get -s fs a:b c",
		"afscp -s ln ls a:b",
		"afscp -vs lock ls -s fs a:b",
		"afscp --timeout lock ls -s fs a:b",
		"afscp --server ln rm -s ln a:b",
		"afscp mv a:ln -s fs a:lock",
		"afscp ln -- -s a:b",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		want(lines[i], lines[i]);
}
END_TEST

START_TEST(links)
{
	want("afscp -s fs ln -s text a:b", "afscp -s fs ln --symbolic text a:b");
	want("afscp ln text -s a:b", "afscp ln text --symbolic a:b");
	want("afscp -v --server=fs ln -s text a:b", "afscp -v --server=fs ln --symbolic text a:b");
	want("afscp --verb --timeout 5 ln -s -- -s a:b",
	     "afscp --verb --timeout 5 ln --symbolic -- -s a:b");
	want("afscp -sfs ln -s text a:b", "afscp -sfs ln --symbolic text a:b");
	want("afscp -s fs ln -sv text a:b", "afscp -s fs ln --symbolic -v text a:b");
	want("afscp ln -vs text a:b", "afscp ln --symbolic -v text a:b");
	want("afscp ln text a:b -vsv", "afscp ln text a:b --symbolic -vv");
	want("afscp ln -ss text a:b", "afscp ln --symbolic text a:b");
	want("afscp ln -s127.0.0.1 -v x a:b", "afscp ln -s127.0.0.1 -v x a:b");
	want("afscp ln -s -- -sv a:b", "afscp ln --symbolic -- -sv a:b");
}
END_TEST

START_TEST(locks)
{
	want("afscp lock a:b cmd -s -v", "afscp lock a:b -- cmd -s -v");
	want("afscp -s fs lock -s a:b cmd -x", "afscp -s fs lock --shared a:b -- cmd -x");
	want("afscp lock a:b -s cmd -s", "afscp lock a:b --shared -- cmd -s");
	want("afscp lock -v a:b -- -cmd -s", "afscp lock -v a:b -- -cmd -s");
	want("afscp lock --timeout 7 a:b cmd", "afscp lock --timeout 7 a:b -- cmd");
	want("afscp lock a:b", "afscp lock a:b");
	want("afscp lock", "afscp lock");
	want("afscp lock -s", "afscp lock --shared");
	want("afscp lock -vs a:b cmd -vs", "afscp lock --shared -v a:b -- cmd -vs");
}
END_TEST

static struct run run;
static char *words[32], line[256];

/* 0, or the result of a line that is refused, with `message` on stderr. */
static int take(enum arguments_shape shape, const char *text, const char *message)
{
	struct test_capture capture;
	char *printed;
	int count, rc;

	memset(&run, 0, sizeof(run));
	snprintf(line, sizeof(line), "%s", text);
	count = split(line, words);
	test_capture(&capture, 2);
	rc = arguments_take(&run, shape, "command", count, words);
	printed = test_captured(&capture);
	if (message)
		ck_assert_msg(strstr(printed, message) != NULL, "\"%s\" is not in: %s", message,
			      printed);
	else
		ck_assert_str_eq(printed, "");
	free(printed);
	return rc;
}

static void done(void)
{
	free(run.places);
	run.places = NULL;
}

START_TEST(shapes)
{
	ck_assert_int_eq(take(ARGUMENTS_TO_LOCAL, "a:b c:d dest", NULL), 0);
	ck_assert_uint_eq(run.place_count, 2);
	ck_assert_str_eq(run.places[1].volume, "c");
	ck_assert_str_eq(run.places[1].path, "d");
	ck_assert_str_eq(run.destination, "dest");
	done();
	ck_assert_int_eq(take(ARGUMENTS_TO_LOCAL, "a:b:c", NULL), 0);
	ck_assert_ptr_null(run.destination);
	ck_assert_str_eq(run.places[0].path, "b:c");
	done();
	ck_assert_int_eq(take(ARGUMENTS_TO_PLACE, "x y: v:p", NULL), 0);
	ck_assert_uint_eq(run.argument_count, 2);
	ck_assert_str_eq(run.arguments[1], "y:");
	ck_assert_str_eq(run.places[0].volume, "v");
	done();
	ck_assert_int_eq(take(ARGUMENTS_TEXT_PLACES, "755 v:p v:q", NULL), 0);
	ck_assert_str_eq(run.arguments[0], "755");
	ck_assert_uint_eq(run.place_count, 2);
	done();
	ck_assert_int_eq(take(ARGUMENTS_PLACE_TEXTS, "v:p alice read", NULL), 0);
	ck_assert_uint_eq(run.argument_count, 2);
	ck_assert_str_eq(run.arguments[0], "alice");
	done();
	ck_assert_int_eq(take(ARGUMENTS_PLACE_COMMAND, "v:p a b", NULL), 0);
	/* It is given to the program as it is. */
	ck_assert_str_eq(run.arguments[0], "a");
	ck_assert_ptr_null(run.arguments[2]);
	done();
}
END_TEST

START_TEST(refusals)
{
	ck_assert_int_eq(take(ARGUMENTS_PLACE, "", "takes VOLUME:PATH"), -1);
	ck_assert_int_eq(take(ARGUMENTS_PLACE, "v:p v:q", "takes VOLUME:PATH"), -1);
	ck_assert_int_eq(take(ARGUMENTS_TO_PLACE, "v:p", "SOURCE"), -1);
	ck_assert_int_eq(take(ARGUMENTS_TEXT_PLACE, "x v:p v:q", "TARGET"), -1);
	ck_assert_int_eq(take(ARGUMENTS_TO_LOCAL, "a:b c:d -", "standard output"), -1);
	ck_assert_int_eq(take(ARGUMENTS_PLACES, "path", "\"path\" is not VOLUME:PATH"), -1);
	done();
	ck_assert_int_eq(take(ARGUMENTS_TWO_PLACES, "a:b :c", "\":c\" is not VOLUME:PATH"), -1);
	done();
}
END_TEST

TEST_MAIN("arguments", unchanged, links, locks, shapes, refusals)
