/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/execute.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fixture.h"

static const char *explain(void **state, const char *name, int err)
{
	static struct fault f;
	char path[256], interpreter[EXECUTE_INTERPRETER_MAX + 1];
	snprintf(path, sizeof(path), "%s/%s", fixture_path(state), name);
	execute_find_interpreter(path, interpreter);
	execute_explain(path, interpreter, err, &f);
	return f.text;
}

static void test_missing(void **state)
{
	(void)state;
	struct fault f;
	execute_explain("/foo-not-there", "", ENOENT, &f);
	assert_string_equal(f.text, "Unable to open \"/foo-not-there\": No such file or directory");
	execute_explain("/", "", EACCES, &f);
	assert_string_equal(f.text, "Unable to open \"/\": Permission denied");
	execute_explain("/bin/x", "/no", ENOEXEC, &f);
	assert_string_equal(f.text, "Unable to execute \"/bin/x\": Exec format error");
}

static void test_script(void **state)
{
	fixture_dir(state);
	fixture_write(state, "s", "#! /no/such  -x\n", 16);
	assert_non_null(strstr(explain(state, "s", ENOENT), "open \"/no/such\": No such file"));
	fixture_write(state, "s", "#!/end", 6);
	assert_non_null(strstr(explain(state, "s", ENOENT), "open \"/end\""));
	fixture_write(state, "s", "#!\n", 3);
	assert_non_null(strstr(explain(state, "s", ENOENT), "/s\""));
	fixture_write(state, "s", "#", 1);
	assert_non_null(strstr(explain(state, "s", ENOENT), "/s\""));
	fixture_write(state, "s", "", 0);
	assert_non_null(strstr(explain(state, "s", ENOENT), "/s\""));
}

/* The line that the kernel reads ends after 255 bytes. */
static void test_script_limit(void **state)
{
	char text[600];
	memset(text, 'i', sizeof(text));
	text[0] = '#';
	text[1] = '!';
	fixture_dir(state);
	fixture_write(state, "s", text, sizeof(text));
	assert_true(strlen(explain(state, "s", ENOENT)) < 400);
}

struct elf {
	Elf64_Ehdr eh;
	Elf64_Phdr ph[2];
	char interpreter[16];
};

static struct elf sample(void)
{
	struct elf e = {
		.eh = { .e_phoff = sizeof(Elf64_Ehdr), .e_phnum = 2 },
		.ph[0] = { .p_type = PT_LOAD },
		.ph[1] = { .p_type = PT_INTERP,
			   .p_offset = offsetof(struct elf, interpreter),
			   .p_filesz = 8 },
		.interpreter = "/no/ldso",
	};
	memcpy(e.eh.e_ident, ELFMAG, SELFMAG);
	return e;
}

static const char *explain_elf(void **state, const struct elf *e, size_t len)
{
	fixture_write(state, "e", e, len);
	return explain(state, "e", ENOENT);
}

static void test_elf(void **state)
{
	fixture_dir(state);
	struct elf e = sample();
	assert_non_null(strstr(explain_elf(state, &e, sizeof(e)), "open \"/no/ldso\": No such"));
	e.ph[1].p_filesz = UINT64_MAX;
	assert_non_null(strstr(explain_elf(state, &e, sizeof(e)), "open \"/no/ldso\""));
	e.ph[1].p_offset = UINT64_MAX;
	assert_non_null(strstr(explain_elf(state, &e, sizeof(e)), "/e\""));
	e = sample();
	e.eh.e_phoff = UINT64_MAX - 8;
	assert_non_null(strstr(explain_elf(state, &e, sizeof(e)), "/e\""));
	e = sample();
	e.eh.e_phnum = UINT16_MAX;
	e.ph[1].p_type = PT_NOTE;
	assert_non_null(strstr(explain_elf(state, &e, sizeof(e)), "/e\""));
	e = sample();
	assert_non_null(strstr(explain_elf(state, &e, sizeof(e.eh) + 8), "/e\""));
	assert_non_null(strstr(explain_elf(state, &e, 20), "/e\""));
	e.ph[1].p_filesz = 0;
	assert_non_null(strstr(explain_elf(state, &e, sizeof(e)), "/e\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_missing),
		fixture_test(test_script),
		fixture_test(test_script_limit),
		fixture_test(test_elf),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
