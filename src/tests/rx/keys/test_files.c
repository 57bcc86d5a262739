/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of service keys: formats, ownership, damage, rotation. */

#include "keys/keys.h"
#include "tests/rx/base/testing.h"

#include <rxwire/error.h>

#include <errno.h>
#include <krb5.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file being built. */
struct bytes {
	size_t size;
	uint8_t data[8192];
};

static void put(struct bytes *b, const void *data, size_t size)
{
	ck_assert_uint_le(b->size + size, sizeof(b->data));
	memcpy(b->data + b->size, data, size);
	b->size += size;
}

static void put32(struct bytes *b, uint32_t value)
{
	uint8_t raw[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
			  (uint8_t)value};

	put(b, raw, 4);
}

static void put16(struct bytes *b, uint32_t value)
{
	uint8_t raw[2] = { (uint8_t)(value >> 8), (uint8_t)value };

	put(b, raw, 2);
}

static void put_ext(struct bytes *b, uint32_t type, uint32_t kvno, uint32_t enctype, int fill,
		    uint32_t length)
{
	uint8_t key[256];

	memset(key, fill, sizeof(key));
	put32(b, 16);
	put32(b, type);
	put32(b, kvno);
	put32(b, enctype);
	put32(b, length);
	put(b, key, length);
}

/* An entry of a keytab; name: "afs/cell", its components separated by '/'. */
static void put_entry(struct bytes *b, const char *name, const char *realm, uint32_t time,
		      uint32_t kvno, uint32_t enctype, int fill, uint32_t length)
{
	struct bytes e = { 0 };
	const char *slash = strchr(name, '/');
	uint8_t key[256], kvno8 = (uint8_t)kvno;

	memset(key, fill, sizeof(key));
	put16(&e, slash ? 2 : 1);
	put16(&e, (uint32_t)strlen(realm));
	put(&e, realm, strlen(realm));
	put16(&e, slash ? (uint32_t)(slash - name) : (uint32_t)strlen(name));
	put(&e, name, slash ? (size_t)(slash - name) : strlen(name));
	if (slash) {
		put16(&e, (uint32_t)strlen(slash + 1));
		put(&e, slash + 1, strlen(slash + 1));
	}
	put32(&e, 1);
	put32(&e, time);
	put(&e, &kvno8, 1);
	put16(&e, enctype);
	put16(&e, length);
	put(&e, key, length);
	if (kvno > 255)
		put32(&e, kvno);
	put32(b, (uint32_t)e.size);
	put(b, e.data, e.size);
}

static int parse(const struct bytes *b, const char *which, struct rxw_key_list *list, char *error)
{
	/* Of exactly this size, so that a sanitizer detects a read beyond it. */
	uint8_t *copy = calloc(1, b->size ? b->size : 1);
	int result;

	memcpy(copy, b->data, b->size);
	result = rxw_key_file_parse(copy, b->size, which, 1, list, error);
	free(copy);
	return result;
}

static void check_key(const struct rxw_key_list *list, size_t i, enum rxw_key_type type,
		      int32_t kvno, int32_t enctype, int fill, uint32_t length)
{
	ck_assert_uint_lt(i, list->count);
	ck_assert_int_eq(list->keys[i].type, type);
	ck_assert_int_eq(list->keys[i].kvno, kvno);
	ck_assert_int_eq(list->keys[i].enctype, enctype);
	ck_assert_uint_eq(list->keys[i].length, length);
	for (uint32_t k = 0; k < length; k++)
		ck_assert_uint_eq(list->keys[i].bytes[k], (uint8_t)fill);
}

static void make_ext(struct bytes *b)
{
	*b = (struct bytes){ 0 };
	put32(b, 4);
	put_ext(b, 2, 5, 18, 0x11, 32);
	put_ext(b, 1, 5, 20, 0x22, 32);
	put_ext(b, 7, 5, 20, 0x55, 70); /* of a later version */
	put_ext(b, 0, 6, 1, 0x33, 8);
}

START_TEST(key_file_ext)
{
	struct rxw_key_list list = { 0 };
	char error[RXW_KEY_FILE_ERROR];
	struct bytes b;

	make_ext(&b);
	ck_assert_int_eq(parse(&b, NULL, &list, error), 0);
	ck_assert_uint_eq(list.count, 3);
	check_key(&list, 0, RXW_KEY_KRB5, 5, 18, 0x11, 32);
	check_key(&list, 1, RXW_KEY_RXGK, 5, 20, 0x22, 32);
	check_key(&list, 2, RXW_KEY_DES, 6, 0, 0x33, 8);
	rxw_key_list_free(&list);
}
END_TEST

START_TEST(key_file)
{
	struct rxw_key_list list = { 0 };
	char error[RXW_KEY_FILE_ERROR];
	struct bytes b = { 0 };

	put32(&b, 2);
	put32(&b, 16); /* looks like the head of a key of KeyFileExt */
	put(&b, "AAAAAAAA", 8);
	put32(&b, 4);
	put(&b, "BBBBBBBB", 8);
	ck_assert_int_eq(parse(&b, NULL, &list, error), 0);
	ck_assert_uint_eq(list.count, 2);
	check_key(&list, 0, RXW_KEY_DES, 16, 0, 'A', 8);
	check_key(&list, 1, RXW_KEY_DES, 4, 0, 'B', 8);
	rxw_key_list_free(&list);

	/* In OpenAFS's format: space for eight. */
	while (b.size < 100)
		put(&b, "", 1);
	ck_assert_int_eq(parse(&b, NULL, &list, error), 0);
	ck_assert_uint_eq(list.count, 2);
	rxw_key_list_free(&list);
}
END_TEST

START_TEST(keytab)
{
	static const struct {
		const char *which;
		int result;
		size_t count;
		int fill; /* of the first key */
	} cases[] = {
		{ "afs/example.org@EXAMPLE.ORG", 0, 3, 1 },
		{ "afs/example.org", 0, 3, 1 },
		{ "example.org", 0, 3, 1 },
		{ "afs@EXAMPLE.ORG", 0, 1, 4 },
		{ "afs", -RXW_ENOKEY, 0, 0 }, /* a cell of that name */
		{ "afs/other.org", 0, 1, 6 },
		{ "host/a", 0, 1, 7 },
		{ "small.org", 0, 1, 8 },
		{ "afs@OTHER.ORG", -RXW_ENOKEY, 0, 0 },
		{ "afs/example.org@OTHER.ORG", -RXW_ENOKEY, 0, 0 },
		{ "example", -RXW_ENOKEY, 0, 0 },
		{ "", -RXW_ENOKEY, 0, 0 },
		{ "@", -RXW_ENOKEY, 0, 0 },
		{ "/", -RXW_ENOKEY, 0, 0 },
		/* two files have different keys of the same numbers */
		{ NULL, -RXW_EDECODE, 0, 0 },
	};
	char error[RXW_KEY_FILE_ERROR];
	struct bytes b = { 0 };

	put(&b, "\5\2", 2);
	put_entry(&b, "afs", "EXAMPLE.ORG", 9, 300, 18, 4, 32);
	put_entry(&b, "afs/example.org", "EXAMPLE.ORG", 9, 300, 18, 1, 32);
	put32(&b, (uint32_t)-5);
	put(&b, "\377\377\377\377\377", 5);
	put_entry(&b, "afs/example.org", "EXAMPLE.ORG", 9, 300, 17, 2, 16);
	put_entry(&b, "afs/example.org", "EXAMPLE.ORG", 8, 300, 17, 9, 16); /* older */
	put_entry(&b, "afs/example.org", "EXAMPLE.ORG", 9, 2, 18, 3, 32);
	put_entry(&b, "afs/other.org", "EXAMPLE.ORG", 9, 1, 1, 6, 8);
	put_entry(&b, "host/a", "EXAMPLE.ORG", 9, 1, 20, 7, 32);
	put_entry(&b, "afs", "SMALL.ORG", 9, 1, 19, 8, 16);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rxw_key_list list = { 0 };

		error[0] = '\0';
		ck_assert_msg(parse(&b, cases[i].which, &list, error) == cases[i].result, "%s: %s",
			      cases[i].which, error);
		ck_assert_uint_eq(list.count, cases[i].count);
		if (list.count)
			ck_assert_uint_eq(list.keys[0].bytes[0], cases[i].fill);
		else
			ck_assert_uint_ne(strlen(error), 0);
		if (list.count == 3) {
			check_key(&list, 0, RXW_KEY_KRB5, 300, 18, 1, 32);
			check_key(&list, 1, RXW_KEY_KRB5, 300, 17, 2, 16);
			check_key(&list, 2, RXW_KEY_KRB5, 2, 18, 3, 32);
		}
		rxw_key_list_free(&list);
	}
	/* Zeros after the last entry are unused space. */
	put32(&b, 0);
	put(&b, "rest", 4);
	struct rxw_key_list list = { 0 };

	ck_assert_int_eq(parse(&b, "host/a", &list, error), 0);
	rxw_key_list_free(&list);
}
END_TEST

START_TEST(damage_reported)
{
	struct rxw_key_list list = { 0 };
	char error[RXW_KEY_FILE_ERROR];
	struct bytes b = { 0 };

#define EXPECT(result, text)                                                          \
	do {                                                                          \
		ck_assert_int_eq(parse(&b, NULL, &list, error), result);              \
		ck_assert_msg(strstr(error, text) != NULL, "\"%s\" of: %s", text, error); \
		ck_assert_uint_eq(list.count, 0);                                     \
	} while (0)
	EXPECT(-RXW_EDECODE, "too few");
	put32(&b, 0);
	EXPECT(-RXW_ENOKEY, "no key");
	b = (struct bytes){ 0 };
	put32(&b, 2);
	put_ext(&b, 2, 5, 18, 1, 32);
	EXPECT(-RXW_EDECODE, "key 2, at byte 56: the file ends");
	put32(&b, 17);
	put(&b, "0123456789abcdef", 16);
	EXPECT(-RXW_EDECODE, "header has 17 bytes");
	b.size = 56;
	put_ext(&b, 2, 5, 18, 1, 32);
	EXPECT(-RXW_EDECODE, "a second key");
	b.size = 56;
	put_ext(&b, 2, 5, 17, 1, 32);
	EXPECT(-RXW_EDECODE, "32 bytes is the wrong length for a key of type 2, enctype 17");
	b.size = 56;
	put_ext(&b, 2, 0x80000000, 17, 1, 16);
	EXPECT(-RXW_EDECODE, "kvno 2147483648");
	b.size = 56;
	put_ext(&b, 2, 4, 17, 1, 16);
	put(&b, "x", 1);
	EXPECT(-RXW_EDECODE, "1 extra bytes after the last");
	b = (struct bytes){ 0 };
	put32(&b, 1);
	put_ext(&b, 2, 5, 18, 1, 32);
	b.data[22] = 1; /* a length of 256 and more */
	EXPECT(-RXW_EDECODE, "but the file only");
	b = (struct bytes){ 0 };
	put(&b, "\5\1ab", 4);
	EXPECT(-RXW_EDECODE, "version 1");
	b = (struct bytes){ 0 };
	put(&b, "\5\2", 2);
	put32(&b, 100);
	EXPECT(-RXW_EDECODE, "entry at byte 2: the entry has 100 bytes");
	b.size = 2;
	put32(&b, 0x80000000);
	EXPECT(-RXW_EDECODE, "entry at byte 2");
	b.size = 2;
	put(&b, "\0\0\0", 3);
	EXPECT(-RXW_EDECODE, "3 extra bytes after");
	b.size = 2;
	put32(&b, 2);
	put16(&b, 1);
	EXPECT(-RXW_EDECODE, "within its realm");
	b.size = 2;
	put32(&b, 0);
	EXPECT(-RXW_ENOKEY, "no entries");
	rxw_key_list_free(&list); /* a failure leaves free space */
#undef EXPECT
}
END_TEST

/* Every file truncated and every byte of it changed: refused, or read with other contents. */
START_TEST(every_truncation_and_change)
{
	uint64_t state = test_seed();
	char error[RXW_KEY_FILE_ERROR];
	struct bytes files[3] = { 0 };

	make_ext(&files[0]);
	put32(&files[1], 1);
	put32(&files[1], 3);
	put(&files[1], "12345678", 8);
	put(&files[2], "\5\2", 2);
	put_entry(&files[2], "afs/example.org", "EXAMPLE.ORG", 9, 300, 18, 4, 32);
	put_entry(&files[2], "afs", "EXAMPLE.ORG", 9, 3, 17, 4, 16);
	for (int f = 0; f < 3; f++) {
		struct bytes b;

		for (size_t cut = 0; cut < files[f].size; cut++) {
			struct rxw_key_list list = { 0 };

			b = files[f];
			b.size = cut;
			if (parse(&b, NULL, &list, error) < 0)
				ck_assert_uint_eq(list.count, 0);
			rxw_key_list_free(&list);
		}
		for (size_t i = 0; i < 8 * files[f].size; i++) {
			struct rxw_key_list list = { 0 };

			b = files[f];
			b.data[i / 8] ^= (uint8_t)(1 << i % 8);
			for (int more = (int)test_below(&state, 3); more > 0; more--)
				b.data[test_below(&state, b.size)] =
					(uint8_t)test_below(&state, 256);
			if (parse(&b, "example.org", &list, error) < 0)
				ck_assert_uint_eq(list.count, 0);
			rxw_key_list_free(&list);
		}
	}
}
END_TEST

/* A folder for each test, since the tests run in parallel. */
static char folder[64], path[128];

static void set_up(void)
{
	strcpy(folder, "/tmp/rxwire-keys-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/keys", folder);
}

static void tear_down(void)
{
	unlink(path);
	rmdir(folder);
}

static void save(const struct bytes *b)
{
	char temporary[140];
	FILE *f;

	snprintf(temporary, sizeof(temporary), "%s.new", path);
	f = fopen(temporary, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(b->data, 1, b->size, f), b->size);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(rename(temporary, path), 0);
}

/* Keytabs of libkrb5 are read as libkrb5 reads them. */
START_TEST(keytab_of_libkrb5)
{
	static const struct {
		const char *name;
		krb5_kvno kvno;
		krb5_enctype enctype;
		unsigned length;
	} entries[] = {
		{"afs/rxwire.test@RXWIRE.TEST", 1, 17, 16},
		{"afs/rxwire.test@RXWIRE.TEST", 1, 18, 32},
		{"afs/rxwire.test@RXWIRE.TEST", 255, 19, 16},
		{"afs/rxwire.test@RXWIRE.TEST", 256, 20, 32},
		{"afs/rxwire.test@RXWIRE.TEST", 70000, 23, 16},
		{"host/other@RXWIRE.TEST", 1, 18, 32},
	};
	uint8_t contents[32], out[RXW_KEY_MAX];
	krb5_context context;
	krb5_keytab keytab_handle;
	rxw_keys *keys;
	char error[300];
	size_t length;

	set_up();
	/* Without this machine's configuration. */
	setenv("KRB5_CONFIG", "/dev/null", 1);
	ck_assert_int_eq(krb5_init_context(&context), 0);
	snprintf(error, sizeof(error), "FILE:%s", path);
	ck_assert_int_eq(krb5_kt_resolve(context, error, &keytab_handle), 0);
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		krb5_keytab_entry entry = { .vno = entries[i].kvno };

		memset(contents, (int)i + 1, sizeof(contents));
		ck_assert_int_eq(krb5_parse_name(context, entries[i].name, &entry.principal), 0);
		entry.key.enctype = entries[i].enctype;
		entry.key.length = entries[i].length;
		entry.key.contents = contents;
		ck_assert_int_eq(krb5_kt_add_entry(context, keytab_handle, &entry), 0);
		krb5_free_principal(context, entry.principal);
	}
	krb5_kt_close(context, keytab_handle);
	krb5_free_context(context);

	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_msg(rxw_keys_load(keys, path, "rxwire.test", error, sizeof(error)) == 0, "%s",
		      error);
	ck_assert_str_eq(error, "");
	for (size_t i = 0; i < 5; i++) {
		ck_assert_int_eq(rxw_keys_find(keys, RXW_KEY_KRB5, (int32_t)entries[i].kvno,
					       entries[i].enctype, out, sizeof(out), &length),
				 0);
		ck_assert_uint_eq(length, entries[i].length);
		ck_assert_uint_eq(out[length - 1], i + 1);
	}
	struct rxw_key_info info = { .size = sizeof(info) };

	ck_assert_int_eq(rxw_keys_info(keys, 5, &info), -RXW_ENOKEY);
	rxw_keys_unref(keys);
	tear_down();
}
END_TEST

START_TEST(written_and_read)
{
	rxw_keys *keys, *again;
	uint8_t a[RXW_KEY_MAX], b[RXW_KEY_MAX];
	struct stat status;
	char error[300];
	size_t length;

	set_up();
	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_int_eq(rxw_keys_create(&again), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_KRB5, 1, 18), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_RXGK, 2, 19), 0);
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_DES, 3, 0, "12345678", 8), 0);
	ck_assert_int_eq(rxw_keys_write(keys, path, 0, error, sizeof(error)), 0);
	ck_assert_int_eq(stat(path, &status), 0);
	ck_assert_uint_eq(status.st_mode & 07777, 0600);
	ck_assert_int_eq(rxw_keys_write(keys, path, 0, error, sizeof(error)), -RXW_ESYS);
	ck_assert_int_eq(errno, EEXIST);
	ck_assert_ptr_nonnull(strstr(error, path));
	ck_assert_int_eq(rxw_keys_write(keys, path, 1, error, sizeof(error)), 0);
	ck_assert_int_eq(rxw_keys_load(again, path, NULL, error, sizeof(error)), 0);
	ck_assert_int_eq(rxw_keys_find(keys, RXW_KEY_KRB5, 1, 18, a, sizeof(a), &length), 0);
	ck_assert_int_eq(rxw_keys_find(again, RXW_KEY_KRB5, 1, 18, b, sizeof(b), &length), 0);
	ck_assert_mem_eq(a, b, 32);
	ck_assert_int_eq(rxw_keys_find(keys, RXW_KEY_RXGK, 2, 19, a, sizeof(a), &length), 0);
	ck_assert_int_eq(rxw_keys_find(again, RXW_KEY_RXGK, 2, 19, b, sizeof(b), &length), 0);
	ck_assert_mem_eq(a, b, 16);
	ck_assert_int_eq(rxw_keys_find(again, RXW_KEY_DES, 3, 0, b, sizeof(b), &length), 0);
	ck_assert_mem_eq(b, "12345678", 8);
	ck_assert_int_eq(rxw_keys_write(keys, "/nonexistent/keys", 1, error, sizeof(error)),
			 -RXW_ESYS);
	ck_assert_int_eq(errno, ENOENT);
	rxw_keys_unref(again);
	rxw_keys_unref(keys);
	tear_down();
}
END_TEST

START_TEST(not_files)
{
	rxw_keys *keys;
	char error[300], tiny[8];

	set_up();
	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_int_eq(rxw_keys_load(keys, path, NULL, error, sizeof(error)), -RXW_ESYS);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_ptr_eq(strstr(error, path), error);
	ck_assert_int_eq(rxw_keys_load(keys, path, NULL, tiny, sizeof(tiny)), -RXW_ESYS);
	ck_assert_uint_lt(strlen(tiny), sizeof(tiny));
	ck_assert_int_eq(rxw_keys_load(keys, path, NULL, NULL, 0), -RXW_ESYS);
	ck_assert_int_eq(rxw_keys_load(keys, folder, NULL, error, sizeof(error)), -RXW_ESYS);
	ck_assert_int_eq(errno, EISDIR);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(rxw_keys_load(keys, path, NULL, error, sizeof(error)), -RXW_ESYS);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(rxw_keys_reload(keys, error, sizeof(error)), 0);
	rxw_keys_unref(keys);
	tear_down();
}
END_TEST

static atomic_bool stop;

/* Version 1 stays valid through all rotations. */
static void *use(void *context)
{
	uint8_t out[RXW_KEY_MAX];
	size_t length;
	int32_t kvno, last = 0;

	do {
		if (rxw_keys_find(context, RXW_KEY_KRB5, 1, 18, out, sizeof(out), &length) != 0 ||
		    out[0] != 1)
			return "the old key is missing";
		if (rxw_keys_best(context, RXW_KEY_KRB5, &kvno, NULL, out, sizeof(out), &length) !=
			    0 ||
		    kvno < last || out[0] != (uint8_t)kvno)
			return "the best key is wrong";
		last = kvno;
	} while (!atomic_load(&stop));
	return NULL;
}

/* A key file that any user can read is not secret: the keys are loaded, with a warning. */
START_TEST(readable_by_others)
{
	static const struct {
		mode_t mode;
		const char *told; /* NULL: no warning */
	} rows[] = {{0600, NULL}, {0640, NULL}, {0644, "read its keys (mode 0644)"},
		    {0602, "replace its keys (mode 0602)"}, {0400, NULL}};
	struct bytes b = { 0 };
	char error[300];
	rxw_keys *keys;

	set_up();
	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	put32(&b, 1);
	put_ext(&b, 2, 1, 18, 1, 32);
	save(&b);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ck_assert_int_eq(chmod(path, rows[i].mode), 0);
		for (int again = 0; again < 2; again++) {
			memset(error, 'x', sizeof(error));
			ck_assert_int_eq(
				again ? rxw_keys_reload(keys, error, sizeof(error))
				      : rxw_keys_load(keys, path, NULL, error, sizeof(error)),
				0);
			if (!rows[i].told) {
				ck_assert_str_eq(error, "");
				continue;
			}
			ck_assert_ptr_nonnull(strstr(error, path));
			ck_assert_ptr_nonnull(strstr(error, rows[i].told));
		}
	}
	ck_assert_int_eq(rxw_keys_load(keys, path, NULL, NULL, 0), 0);
	rxw_keys_unref(keys);
	unlink(path);
}
END_TEST

START_TEST(rotation)
{
	rxw_keys *keys;
	pthread_t thread[2];
	struct bytes b = { 0 };
	char error[300];
	void *wrong;

	set_up();
	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	put32(&b, 1);
	put_ext(&b, 2, 1, 18, 1, 32);
	save(&b);
	ck_assert_int_eq(rxw_keys_load(keys, path, NULL, error, sizeof(error)), 0);
	ck_assert_int_eq(rxw_keys_reload(keys, error, sizeof(error)), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, use, keys), 0);
	for (uint32_t kvno = 2; kvno < 40; kvno++) {
		b.data[3] = (uint8_t)kvno;
		put_ext(&b, 2, kvno, 18, (int)kvno, 32);
		save(&b);
		ck_assert_int_eq(rxw_keys_reload(keys, error, sizeof(error)), 1);
		ck_assert_int_eq(rxw_keys_reload(keys, error, sizeof(error)), 0);
	}
	/* A damaged file and a deleted one leave the loaded keys. */
	b.size -= 3;
	save(&b);
	ck_assert_int_eq(rxw_keys_reload(keys, error, sizeof(error)), -RXW_EDECODE);
	ck_assert_ptr_nonnull(strstr(error, "key 39"));
	unlink(path);
	ck_assert_int_eq(rxw_keys_reload(keys, error, sizeof(error)), -RXW_ESYS);
	ck_assert_int_eq(rxw_keys_load(keys, path, NULL, error, sizeof(error)), -RXW_ESYS);
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], &wrong);
		ck_assert_msg(!wrong, "%s", (char *)wrong);
	}
	/* Keys that the file no longer has are gone. */
	b = (struct bytes){ 0 };
	put32(&b, 1);
	put_ext(&b, 2, 50, 18, 50, 32);
	save(&b);
	ck_assert_int_eq(rxw_keys_reload(keys, error, sizeof(error)), 1);
	struct rxw_key_info info = { .size = sizeof(info) };

	ck_assert_int_eq(rxw_keys_info(keys, 0, &info), 0);
	ck_assert_int_eq(info.kvno, 50);
	ck_assert_int_eq(rxw_keys_info(keys, 1, &info), -RXW_ENOKEY);
	rxw_keys_unref(keys);
	tear_down();
}
END_TEST

TEST_MAIN("files", key_file_ext, key_file, keytab, damage_reported, every_truncation_and_change,
	  keytab_of_libkrb5, written_and_read, not_files, readable_by_others, rotation)
