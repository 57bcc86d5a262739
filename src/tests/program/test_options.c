/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of common/options.c: tables, tunables, files, and one line for every mistake. */

#include "tests/tools/testing.h"

#include "program/message.h"
#include "program/options.h"

struct target {
	bool flag;
	uint64_t number, size, time;
	const char *text;
	struct tools_list list;
	int choice;
	char called[32];
};

static int call(void *target, const char *value, char *allowed, size_t size)
{
	struct target *t = target;

	snprintf(allowed, size, "a word of at most 8 letters");
	if (strlen(value) > 8)
		return -1;
	strcpy(t->called, value);
	return 0;
}

#define AT(field) .offset = offsetof(struct target, field)
static const struct tools_option options[] = {
	{.name = "flag", .letter = 'f', .kind = TOOLS_FLAG, AT(flag), .help = "a flag"},
	{.name = "number",
	 .letter = 'n',
	 .kind = TOOLS_UINT,
	 AT(number),
	 .argument = "N",
	 .help = "a number",
	 .min = 1,
	 .max = 10},
	{.name = "size",
	 .letter = 's',
	 .kind = TOOLS_SIZE,
	 AT(size),
	 .argument = "BYTES",
	 .help = "a size",
	 .min = 1024},
	{.name = "time",
	 .kind = TOOLS_DURATION,
	 AT(time),
	 .argument = "S",
	 .help = "a time",
	 .max = 60000},
	{.name = "text", .kind = TOOLS_STRING, AT(text), .argument = "TEXT", .help = "a text"},
	{.name = "item", .kind = TOOLS_LIST, AT(list), .argument = "ITEM", .help = "a list"},
	{.name = "choice",
	 .kind = TOOLS_CHOICE,
	 AT(choice),
	 .argument = "one|two|three",
	 .help = "a choice"},
	{.name = "call", .kind = TOOLS_CALL, .argument = "WORD", .help = "a call", .set = call},
	{.name = "window",
	 .letter = 'W',
	 .kind = TOOLS_TUNABLE,
	 .argument = "PACKETS",
	 .help = "a tunable with a letter"},
};
static const struct tools_program program = {
	.name = "rxperf",
	.usage = "usage: demo\n",
	.summary = "A program.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

static struct target target;
static struct rxw_config config;
static int first;
static char *err, *out;

static void forget(void)
{
	free(err);
	free(out);
	err = out = NULL;
	tools_list_free(&target.list);
}

/* Parses the words up to NULL. */
static enum tools_parsed parse(char **words)
{
	struct test_capture o, e;
	enum tools_parsed result;
	int count = 0;

	forget();
	memset(&target, 0, sizeof(target));
	rxw_config_init(&config, sizeof(config));
	while (words[count])
		count++;
	test_capture(&o, STDOUT_FILENO);
	test_capture(&e, STDERR_FILENO);
	result = tools_options_parse(&program, &target, &config, count, words, &first);
	err = test_captured(&e);
	out = test_captured(&o);
	return result;
}
#define PARSE(...) parse((char *[]){"rxperf", __VA_ARGS__, NULL})

START_TEST(all_kinds)
{
	ck_assert_int_eq(PARSE("-f", "-n", "3", "--size=64K", "--time", "1.5", "--text", "hello",
			       "--item", "a", "--item", "b", "--choice", "two", "--call", "word"),
			 TOOLS_RUN);
	ck_assert_str_eq(err, "");
	ck_assert(target.flag);
	ck_assert_uint_eq(target.number, 3);
	ck_assert_uint_eq(target.size, 65536);
	ck_assert_uint_eq(target.time, 1500);
	ck_assert_str_eq(target.text, "hello");
	ck_assert_uint_eq(target.list.count, 2);
	ck_assert_str_eq(target.list.items[1], "b");
	ck_assert_int_eq(target.choice, 1);
	ck_assert_str_eq(target.called, "word");
	forget();
}
END_TEST

START_TEST(order_and_arguments)
{
	char *words[] = {"rxperf", "one", "-n", "3", "two", "--flag", "--", "--three", NULL};

	ck_assert_int_eq(parse(words), TOOLS_RUN);
	ck_assert_int_eq(first, 5);
	ck_assert_str_eq(words[first], "one");
	ck_assert_str_eq(words[first + 1], "two");
	ck_assert_str_eq(words[first + 2], "--three");
	ck_assert(target.flag);
	forget();
}
END_TEST

START_TEST(tunables)
{
	ck_assert_int_eq(PARSE("--gso", "off", "-W", "32", "--mtu=1000", "--rcvbuf", "1M"),
			 TOOLS_RUN);
	ck_assert_int_eq(config.gso, RXW_OFF);
	ck_assert_uint_eq(config.window, 32);
	ck_assert_uint_eq(config.mtu, 1000);
	ck_assert_uint_eq(config.rcvbuf, 1 << 20);
	/* Every tunable is accepted as an option, with its current value. */
	{
		size_t count;
		const struct rxw_option *all = rxw_config_options(&count);

		ck_assert_uint_gt(count, 20);
		for (size_t i = 0; i < count; i++) {
			char name[64], value[512];

			ck_assert_int_ge(rxw_config_get(&config, all[i].name, value, sizeof(value)),
					 0);
			snprintf(name, sizeof(name), "--%s", all[i].name);
			ck_assert_msg(PARSE(name, value) == TOOLS_RUN, "%s %s: %s", name, value,
				      err);
		}
	}
	forget();
}
END_TEST

/* Each mistake: one line, with the option, the value, and the permitted values. */
START_TEST(mistakes)
{
	static const struct {
		const char *words[3];
		const char *names[3];
	} bad[] = {
		{{"--nonsense"}, {"--nonsense", "--help"}},
		{{"--nmber=3"}, {"--nmber", "did you mean --number?"}},
		{{"--windwo", "3"}, {"--windwo", "did you mean --window?"}},
		{{"--text", ""}, {"--text", "needs a value"}},
		{{"--item="}, {"--item", "needs a value"}},
		{{"--affinity", "8000"}, {"--affinity", "processor 8000"}},
		{{"--affinity", "auto,3"},
		 {"affinity", "\"auto,3\"", "auto or a list of processors"}},
		{{"--nonsense=3"}, {"--nonsense", "--help"}},
		{{"-Z"}, {"-Z", "--help"}},
		{{"--number"}, {"--number", "value"}},
		{{"-n"}, {"-n", "value"}},
		{{"--flag=3"}, {"--flag"}},
		{{"--number", "0"}, {"--number", "\"0\"", "1 to 10"}},
		{{"-n", "11"}, {"--number", "\"11\"", "1 to 10"}},
		{{"-n", "x"}, {"--number", "\"x\"", "1 to 10"}},
		{{"--size", "1"}, {"--size", "\"1\"", "1K"}},
		{{"--size", "1Q"}, {"--size", "\"1Q\"", "K"}},
		{{"--time", "61"}, {"--time", "\"61\"", "60"}},
		{{"--choice", "four"}, {"--choice", "\"four\"", "one|two|three"}},
		{{"--choice", ""}, {"--choice", "one|two|three"}},
		{{"--choice", "one|two"}, {"--choice", "one|two|three"}},
		{{"--call", "much-too-long"}, {"--call", "much-too-long", "8 letters"}},
		{{"--window", "70000"}, {"window", "70000", "65535"}},
		{{"-W", "0"}, {"window", "0", "65535"}},
		{{"--gso", "perhaps"}, {"gso", "perhaps", "auto"}},
		{{"--config", "/nonexistent/rxwire.conf"}, {"/nonexistent/rxwire.conf", "No such"}},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char *words[] = {"rxperf", (char *)bad[i].words[0], (char *)bad[i].words[1], NULL};

		ck_assert_msg(parse(words) == TOOLS_USAGE, "%s", bad[i].words[0]);
		test_one_line(err);
		ck_assert_str_eq(out, "");
		for (size_t j = 0; j < 3 && bad[i].names[j]; j++)
			ck_assert_msg(strstr(err, bad[i].names[j]), "\"%s\" is not in: %s",
				      bad[i].names[j], err);
	}
	forget();
}
END_TEST

START_TEST(help_and_version)
{
	size_t count;
	const struct rxw_option *all = rxw_config_options(&count);

	ck_assert_int_eq(PARSE("--help"), TOOLS_DONE);
	ck_assert_ptr_nonnull(strstr(out, "usage: demo"));
	for (size_t i = 0; i < count; i++) {
		char name[64];

		snprintf(name, sizeof(name), "--%s ", all[i].name);
		ck_assert_msg(strstr(out, name), "%s is not in the help", name);
	}
	/* Defaults, with K, M and G, are in it. */
	ck_assert_ptr_nonnull(strstr(out, "(192M bytes)\n"));
	ck_assert_ptr_nonnull(strstr(out, "(1444 bytes)\n"));
	ck_assert_ptr_nonnull(strstr(out, "receive buffer of each socket (auto)\n"));
	ck_assert_int_eq(PARSE("-h"), TOOLS_DONE);
	ck_assert_int_eq(PARSE("--version"), TOOLS_DONE);
	test_one_line(out);
	ck_assert_ptr_nonnull(strstr(out, "rxperf"));
	ck_assert_int_eq(PARSE("-V"), TOOLS_DONE);
	test_one_line(out);
	ck_assert_int_eq(PARSE("--help"), TOOLS_DONE);
	for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n"))
		ck_assert_msg(strlen(line) <= 100, "%zu columns: %s", strlen(line), line);
	forget();
}
END_TEST

static char path[512];

static void write_file(const char *folder, const char *text)
{
	FILE *f;

	snprintf(path, sizeof(path), "%s/rxwire.conf", folder);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
}

START_TEST(file)
{
	char *folder = test_folder();

	write_file(folder,
		   "# a comment\n; another\nwindow = 16\n[rxwire]\ngso = off\nrcvbuf = 2M\n"
		   "[rxfsd]\nexport = /srv\n[rxperf]\nnumber = 4\nflag = yes\ntext = from file\n"
		   "item = a\nitem = b\nmtu = 900 ; behind\n");
	ck_assert_int_eq(PARSE("--config", path), TOOLS_RUN);
	ck_assert_str_eq(err, "");
	ck_assert_uint_eq(config.window, 16);
	ck_assert_int_eq(config.gso, RXW_OFF);
	ck_assert_uint_eq(config.rcvbuf, 2 << 20);
	ck_assert_uint_eq(config.mtu, 900);
	ck_assert_uint_eq(target.number, 4);
	ck_assert(target.flag);
	ck_assert_str_eq(target.text, "from file");
	ck_assert_uint_eq(target.list.count, 2);
	/* The command line takes precedence at any position. */
	ck_assert_int_eq(PARSE("-W", "8", "-n", "5", "--config", path, "--text", "mine"),
			 TOOLS_RUN);
	ck_assert_uint_eq(config.window, 8);
	ck_assert_uint_eq(target.number, 5);
	ck_assert_str_eq(target.text, "mine");
	ck_assert_int_eq(PARSE("--check-config", "--config", path), TOOLS_DONE);
	ck_assert_ptr_nonnull(strstr(out, path));
	unlink(path);
	rmdir(folder);
	free(folder);
	forget();
}
END_TEST

/* One file serves all programs, including one without transport options. */
START_TEST(one_file_for_all)
{
	static const char text[] = "window = 16\n[rxwire]\ngso = off\n[rxfsd]\na = 1\n"
				   "[afscp]\na = 1\n[rxwstat]\na = 1\n[rxperf]\nnumber = 4\n";
	struct tools_program plain = program;
	char *folder = test_folder(), message[512] = "";

	plain.no_tunables = true;
	write_file(folder, text);
	forget();
	ck_assert_int_eq(PARSE("--config", path), TOOLS_RUN);
	ck_assert_uint_eq(config.window, 16);
	forget();
	ck_assert_int_eq(
		tools_config_read(&plain, &target, &config, path, message, sizeof(message)), 0);
	ck_assert_str_eq(message, "");
	ck_assert_uint_eq(target.number, 4);
	/*
	 * Names unknown to all programs are errors, and so are transport options in a program's
	 * section.
	 */
	write_file(folder, "[rxwire]\nnumber = 1\n");
	ck_assert_int_lt(
		tools_config_read(&plain, &target, &config, path, message, sizeof(message)), 0);
	write_file(folder, "[rxperf]\nwindow = 1\nmtu = 900\n");
	ck_assert_int_lt(
		tools_config_read(&plain, &target, &config, path, message, sizeof(message)), 0);
	ck_assert_ptr_nonnull(strstr(message, "mtu"));
	unlink(path);
	rmdir(folder);
	free(folder);
	forget();
}
END_TEST

static bool seen(const char *message, const char *want)
{
	char text[600];

	snprintf(text, sizeof(text), "%s", message);
	tools_place_message(text, sizeof(text));
	return strcmp(text, want) == 0;
}

/* A message about a value that proves wrong later names the line that set it. */
START_TEST(line_of_a_setting)
{
	char *folder = test_folder(), want[700], small[20] = "--text is short";

	write_file(folder,
		   "\xef\xbb\xbf[rxperf]\n number = 4\ntext = from file\nitem = a\n\titem = b\n"
		   "window = 3\n[rxwire]\nwindow = 4\n");
	ck_assert_int_eq(PARSE("--config", path, "--item", "c", "-n", "5"), TOOLS_RUN);
	ck_assert_str_eq(target.text, "from file");
	ck_assert_uint_eq(target.list.count, 3);
	snprintf(want, sizeof(want), "%s:3: --text from file: wrong", path);
	ck_assert(seen("--text from file: wrong", want));
	snprintf(want, sizeof(want), "%s:4: --item 'a': wrong", path);
	ck_assert(seen("--item 'a': wrong", want));
	snprintf(want, sizeof(want), "%s:5: --item b: wrong", path);
	ck_assert(seen("--item b: wrong", want));
	snprintf(want, sizeof(want), "%s:8: taken: choose another --window", path);
	ck_assert(seen("taken: choose another --window", want));
	/* The command line set these, or they have defaults. */
	ck_assert(seen("--item c: wrong", "--item c: wrong"));
	ck_assert(seen("--number 5: wrong", "--number 5: wrong"));
	ck_assert(seen("--flag: wrong", "--flag: wrong"));
	ck_assert(seen("no option", "no option"));
	tools_place_message(small, sizeof(small));
	ck_assert_uint_lt(strlen(small), sizeof(small));
	tools_place_reset();
	ck_assert(seen("--text from file: wrong", "--text from file: wrong"));
	unlink(path);
	rmdir(folder);
	free(folder);
	forget();
}
END_TEST

START_TEST(bad_files)
{
	static const struct {
		const char *text;
		const char *names[3];
	} bad[] = {
		{"window = 70000\n", {":1:", "window", "65535"}},
		{"\n\n[rxperf]\nnumber = 99\n", {":4:", "number", "1 to 10"}},
		{"[rxperf]\nnothing = 1\n", {":2:", "nothing", "--help"}},
		{"[rxwire]\nnumber = 1\n", {":2:", "number"}},
		{"[elsewhere]\nx = 1\n", {":2:", "elsewhere"}},
		{"[rxperf]\nflag = perhaps\n", {":2:", "flag", "yes or no"}},
		{"what is this\n", {":1:", "name = value"}},
		{"gso = off\n[rxperf\n", {":2:", "]"}},
		{"[rxperf\nnumber = 1\n", {":1:", "]"}},
		{"[rxperf] number = 1\n", {":1:", "heading"}},
		{"what is this\nnothing = 1\n", {":1:", "name = value"}},
		{"number = 1\n", {":1:", "number", "[rxperf]"}},
		{"[rxperf]\nnmber = 1\n", {":2:", "nmber", "did you mean number?"}},
		/* an indented line is a line of its own and does not continue the value above it */
		{"[rxperf]\ntext = one\n  two\n", {":3:", "name = value"}},
		{"[rxperf]\ntext = one\n\tnothing = 2\n", {":3:", "nothing"}},
		{"[rxperf]\ntext = one\n  number = 99\n", {":3:", "1 to 10"}},
		{"[rxperf]\ntext =\n", {":2:", "text", "needs a value"}},
		/* twice in a section */
		{"[rxperf]\nnumber = 1\nflag = yes\nnumber = 2\n", {":4:", "number", "line 2"}},
		{"window = 1\n[rxwire]\nmtu = 900\ngso = off\nmtu = 901\n",
		 {":5:", "mtu", "line 3"}},
		/* errors that are found only after all of it is read */
		{"affinity = 0,8000\n[rxperf]\nnumber = 1\n", {":1:", "affinity", "8000"}},
	};
	char *folder = test_folder(), *text;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_file(folder, bad[i].text);
		ck_assert_msg(PARSE("--config", path) == TOOLS_USAGE, "%s", bad[i].text);
		test_one_line(err);
		ck_assert_ptr_nonnull(strstr(err, path));
		for (size_t j = 0; j < 3 && bad[i].names[j]; j++)
			ck_assert_msg(strstr(err, bad[i].names[j]), "\"%s\" is not in: %s",
				      bad[i].names[j], err);
	}
	/* A line that libinih would split: an error, not two halves. */
	text = malloc(600);
	memset(text, 'x', 600);
	memcpy(text, "[rxperf]\ntext = ", 16);
	strcpy(text + 590, "\n");
	write_file(folder, text);
	ck_assert_int_eq(PARSE("--config", path), TOOLS_USAGE);
	ck_assert_ptr_nonnull(strstr(err, "too long"));
	free(text);
	/* A directory is not a file. */
	ck_assert_int_eq(PARSE("--config", folder), TOOLS_USAGE);
	test_one_line(err);
	unlink(path);
	rmdir(folder);
	free(folder);
	forget();
}
END_TEST

/* What -S, the environment and the file of the server name, in this order. */
START_TEST(directory_of_a_store)
{
	char *folder = test_folder(), *value;

	write_file(folder, "store = /wrong\n[rxvol]\nstore = /wrong\n[rxfsd]\n"
			   "; store = /wrong\n  store = /srv/a b ; a comment\nexport = /x\n"
			   "[rxpt]\nstore = /wrong\n");
	value = tools_config_value(path, "rxfsd", "store");
	ck_assert_pstr_eq(value, "/srv/a b");
	free(value);
	ck_assert_ptr_null(tools_config_value(path, "rxfsd", "protection"));
	ck_assert_ptr_null(tools_config_value(folder, "rxfsd", "store"));
	ck_assert_ptr_null(tools_config_value("/nowhere/file", "rxfsd", "store"));

	setenv(TOOLS_STORE_VARIABLE, "/of/the/environment", 1);
	ck_assert_str_eq(tools_store_directory("given", "store"), "given");
	ck_assert_str_eq(tools_store_directory(NULL, "store"), "/of/the/environment");
	setenv(TOOLS_STORE_VARIABLE, "", 1);
	ck_assert_str_eq(tools_store_directory("given", "store"), "given");
	ck_assert_ptr_null(tools_store_directory(NULL, "store"));
	unsetenv(TOOLS_STORE_VARIABLE);
	unlink(path);
	rmdir(folder);
	free(folder);
	forget();
}
END_TEST

TEST_MAIN("options", all_kinds, order_and_arguments, tunables, mistakes, help_and_version, file,
	  one_file_for_all, line_of_a_setting, bad_files, directory_of_a_store)
