/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration file, as a file of each kind of directory. Properties: what is refused names a
 * cause; what is accepted is printed, each entry of that is accepted again, and printed as the
 * same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/config/location.h"
#include "host/config/parse.h"
#include "host/config/print.h"
#include "lib/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool property)
{
	if (!property)
		abort();
}

static char *print(const struct config *c)
{
	cleanup_buf struct buf out;
	buf_init(&out, CONFIG_OUTPUT_MAX);
	check(config_print(c, false, &out) == 0);
	return buf_take_string(&out);
}

static void check_round_trip(const struct config *c)
{
	static const unsigned parts[] = { CONFIG_AUTH, CONFIG_PATHS, CONFIG_STAGE1, CONFIG_IMAGES };
	CLEANUP(config_deinit) struct config back;
	cleanup_json struct json_object *obj = NULL;
	cleanup_free char *text = print(c);
	config_init(&back);
	check(json_parse(text, strlen(text), &obj) == 0);
	struct json_object *list = json_member(obj, "stage0");
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		cleanup_buf struct buf entry;
		buf_init(&entry, CONFIG_OUTPUT_MAX);
		check(json_write(json_object_array_get_idx(list, i), false, &entry) == 0);
		int accepted = 0;
		for (size_t p = 0; p < ARRAY_SIZE(parts); p++)
			accepted += config_parse(buf_data(&entry), buf_len(&entry), parts[p], &back,
						 NULL) == 0;
		check(accepted == 1 || buf_len(&entry) > CONFIG_FILE_MAX);
		if (accepted == 0)
			return;
	}
	cleanup_free char *again = print(&back);
	check(strcmp(text, again) == 0);
}

static void check_part(const char *text, size_t len, unsigned part)
{
	struct err e = ERR_INIT;
	CLEANUP(config_deinit) struct config c;
	char path[PATH_MAX];
	config_init(&c);
	int r = config_parse(text, len, part, &c, &e);
	if (r < 0) {
		check(e.code == r && e.text[0] != '\0');
		return;
	}
	check(!c.data || c.data[0] == '/');
	check(!c.stage1_name == !c.stage1_version);
	if (c.stage1_location && location_path(c.stage1_location, path) == 0)
		check(path[0] == '/');
	check_round_trip(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_part((const char *)data, size, CONFIG_AUTH);
	check_part((const char *)data, size, CONFIG_PATHS);
	check_part((const char *)data, size, CONFIG_STAGE1);
	check_part((const char *)data, size, CONFIG_IMAGES);
	return 0;
}
