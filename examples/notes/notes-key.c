/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a file with a key for the service, for trials without a Kerberos server. */
#include <stdio.h>

#include <rxwire/rxwire.h>

int main(int argc, char **argv)
{
	rxw_keys *keys;
	char why[256] = "";
	int result;

	if (argc != 2) {
		fprintf(stderr, "usage: notes-key FILE\n");
		return 2;
	}
	result = rxw_keys_create(&keys);
	if (result < 0) {
		fprintf(stderr, "notes-key: %s\n", rxw_strerror(result));
		return 1;
	}
	/* Version 1, of the encryption type aes256-cts-hmac-sha1-96. */
	result = rxw_keys_generate(keys, RXW_KEY_KRB5, 1, 18);
	if (result >= 0)
		result = rxw_keys_write(keys, argv[1], 0, why, sizeof(why));
	if (result < 0)
		fprintf(stderr, "notes-key: %s\n", *why ? why : rxw_strerror(result));
	rxw_keys_unref(keys);
	return result < 0;
}
