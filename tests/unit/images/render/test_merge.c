/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers in, listing of the rendered file system out: every rule of merge.h, through libarchive and
 * the squashfs writer.
 */
#include "images/render/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "images/render/render.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/render/layers.h"
#include "tests/unit/images/render/listing.h"

#define LAYERS_MAX 4

/* NULL-terminated lists of lines, one for each layer; a NULL list ends them. */
typedef const char *const *layer_lines;

static int render_lines(const layer_lines *layers, const char *format, int out, struct err *e)
{
	struct render_layer job_layers[LAYERS_MAX];
	struct render_job job = { .layers = job_layers, .out = out, .where = "DIR" };
	job.bytes_max = RENDER_BYTES_MAX;
	for (; layers[job.n_layers]; job.n_layers++) {
		struct render_layer *l = &job_layers[job.n_layers];
		cleanup_blob struct blob tar = { NULL, 0 };
		layers_make(layers[job.n_layers], format, &tar);
		*l = (struct render_layer){ .span = SPAN_INIT };
		layers_span(tar.data, tar.len, &l->span);
		digest_of(tar.data, tar.len, &l->diff_id);
	}
	int r = render_here(&job, NULL, e);
	for (size_t i = 0; i < job.n_layers; i++)
		span_deinit(&job_layers[i].span);
	return r;
}

static void check(const layer_lines *layers, const char *want)
{
	cleanup_fd int out = memfd_create("image", MFD_CLOEXEC);
	struct err e = ERR_INIT;
	if (render_lines(layers, "pax", out, &e) < 0)
		fail_msg("%s", e.text);
	cleanup_free char *got = listing_of(out);
	assert_string_equal(got, want);
}

static void check_fails(const layer_lines *layers, const char *want)
{
	cleanup_fd int out = memfd_create("image", MFD_CLOEXEC);
	struct err e = ERR_INIT;
	assert_true(render_lines(layers, "pax", out, &e) < 0);
	if (!strstr(e.text, want))
		fail_msg("\"%s\" is not in \"%s\"", want, e.text);
}

#define LINES(...)     ((const char *const[]){ __VA_ARGS__, NULL })
#define LAYERS(...)    ((const layer_lines[]){ __VA_ARGS__, NULL })
#define ROOT           "d 0755 0:0 0 2 /\n"
#define ROOT_OF(nlink) "d 0755 0:0 0 " nlink " /\n"

static void test_attributes(void **state)
{
	(void)state;
	static const char dropped[] =
		"f dropped text=x x:system.posix_acl_access=1 x:security.selinux=s "
		"x:trusted.overlay.opaque=y x:user.=e x:other=1";
	check(LAYERS(LINES("d ./ mode=0750 uid=7 gid=8 mtime=9",
			   "f su mode=6755 uid=1000 gid=65533 mtime=4294967295 text=hi",
			   "f cap text=x x:security.capability=%01%00 x:user.b=2 x:user.a=1",
			   dropped, "f early mtime=-5", "f late mtime=4294967296",
			   "f big uid=4294967294", "l link to=/etc/passwd",
			   "c null dev=1,3 mode=666", "b sd dev=4095,1048575", "p fifo mode=600",
			   "d dir mode=1777 x:trusted.k=v")),
	      "d 0750 7:8 9 3 /\n"
	      "f 0644 4294967294:0 0 1 big size=0\n"
	      "f 0644 0:0 0 1 cap =x security.capability=%01 user.a=1 user.b=2\n"
	      "d 1777 0:0 0 2 dir trusted.k=v\n"
	      "f 0644 0:0 0 1 dropped =x\n"
	      "f 0644 0:0 0 1 early size=0\n"
	      "p 0600 0:0 0 1 fifo\n"
	      "f 0644 0:0 4294967295 1 late size=0\n"
	      "l 0777 0:0 0 1 link ->/etc/passwd\n"
	      "c 0666 0:0 0 1 null 1,3\n"
	      "b 0644 0:0 0 1 sd 4095,1048575\n"
	      "f 6755 1000:65533 4294967295 1 su =hi\n");
	check_fails(LAYERS(LINES("f a uid=4294967295")), "owner out of range");
	check_fails(LAYERS(LINES("c a dev=4096,0")), "no such device number");
	check_fails(LAYERS(LINES("b a dev=0,1048576")), "no such device number");
}

static void test_whiteouts(void **state)
{
	(void)state;
	const char *const *base = LINES("d a", "f a/x text=1", "f a/y text=2", "d a/sub",
					"f a/sub/z text=3", "f b text=4");
	check(LAYERS(base, LINES("f a/.wh.x", "f .wh.b", "f .wh.missing", "f no/where/.wh.x")),
	      ROOT_OF("3") "d 0755 0:0 0 3 a\n"
			   "d 0755 0:0 0 2 a/sub\n"
			   "f 0644 0:0 0 1 a/sub/z =3\n"
			   "f 0644 0:0 0 1 a/y =2\n");
	check(LAYERS(base, LINES("f .wh.a")), ROOT "f 0644 0:0 0 1 b =4\n");
	/* What the same layer puts there stays, before and after the whiteout. */
	check(LAYERS(base, LINES("f a/new text=n", "f .wh.a", "f a/late text=l")),
	      ROOT_OF("3") "d 0755 0:0 0 2 a\n"
			   "f 0644 0:0 0 1 a/late =l\n"
			   "f 0644 0:0 0 1 a/new =n\n"
			   "f 0644 0:0 0 1 b =4\n");
	check(LAYERS(base, LINES("f b text=new", "f .wh.b")),
	      ROOT_OF("3") "d 0755 0:0 0 3 a\n"
			   "d 0755 0:0 0 2 a/sub\n"
			   "f 0644 0:0 0 1 a/sub/z =3\n"
			   "f 0644 0:0 0 1 a/x =1\n"
			   "f 0644 0:0 0 1 a/y =2\n"
			   "f 0644 0:0 0 1 b =new\n");
	/* Removed and made again by a third layer. */
	check(LAYERS(base, LINES("f .wh.a"), LINES("f a text=file")),
	      ROOT "f 0644 0:0 0 1 a =file\n"
		   "f 0644 0:0 0 1 b =4\n");
	/* A whiteout is not a file, and a name that only begins like one is. */
	check(LAYERS(LINES("f .wh.x text=1", "f .whx text=2", "d .wh.dir")),
	      ROOT "f 0644 0:0 0 1 .whx =2\n");
	check_fails(LAYERS(LINES("f .wh.")), "a whiteout that names nothing");
	check_fails(LAYERS(LINES("f a/.wh..")), "a whiteout that names nothing");
	check_fails(LAYERS(LINES("f a/.wh...")), "a whiteout that names nothing");
}

static void test_opaque(void **state)
{
	(void)state;
	const char *const *base =
		LINES("d a mode=700", "f a/x text=1", "d a/sub", "f a/sub/z text=3");
	const char *want = ROOT_OF("3") "d 0711 0:0 0 3 a\n"
					"f 0644 0:0 0 1 a/new =n\n"
					"d 0755 0:0 0 2 a/sub\n"
					"f 0644 0:0 0 1 a/sub/mine =m\n";
	check(LAYERS(base, LINES("d a mode=711", "f a/.wh..wh..opq", "f a/new text=n",
				 "f a/sub/mine text=m")),
	      want);
	check(LAYERS(base, LINES("d a mode=711", "f a/new text=n", "f a/sub/mine text=m",
				 "f a/.wh..wh..opq")),
	      want);
	check(LAYERS(base, LINES("f .wh..wh..opq", "f b text=2")), ROOT "f 0644 0:0 0 1 b =2\n");
	check(LAYERS(LINES("f no/.wh..wh..opq")), ROOT);
	/* aufs' bookkeeping. */
	check(LAYERS(LINES("f .wh..wh.aufs text=1", "d .wh..wh.plnk", "f .wh..wh.plnk/1 text=2",
			   "f a/.wh..wh..opq/b text=3")),
	      ROOT);
}

static void test_replacement(void **state)
{
	(void)state;
	check(LAYERS(LINES("d d mode=700 uid=5 x:user.a=1", "f d/x text=1", "f f text=2"),
		     LINES("f d text=file", "d f mode=711")),
	      ROOT_OF("3") "f 0644 0:0 0 1 d =file\n"
			   "d 0711 0:0 0 2 f\n");
	/* A directory over a directory: content stays, attributes are all new. */
	check(LAYERS(LINES("d d mode=700 uid=5 x:user.a=1", "f d/x text=1"),
		     LINES("d d mode=711 mtime=3")),
	      ROOT_OF("3") "d 0711 0:0 3 2 d\n"
			   "f 0644 0:0 0 1 d/x =1\n");
	/* The same in one layer; the last of several entries wins. */
	check(LAYERS(LINES("f a text=1", "f a text=22", "l a to=b", "d a", "f a/x text=3")),
	      ROOT_OF("3") "d 0755 0:0 0 2 a\n"
			   "f 0644 0:0 0 1 a/x =3\n");
	/* A symbolic link is replaced, not followed, by whatever has its name. */
	check(LAYERS(LINES("d etc", "f etc/p text=1", "l ln to=etc"),
		     LINES("d ln", "f ln/q text=2")),
	      ROOT_OF("4") "d 0755 0:0 0 2 etc\n"
			   "f 0644 0:0 0 1 etc/p =1\n"
			   "d 0755 0:0 0 2 ln\n"
			   "f 0644 0:0 0 1 ln/q =2\n");
	check_fails(LAYERS(LINES("f a text=1", "f a/b text=2")), "\"a\" is not a directory");
	check_fails(LAYERS(LINES("l . to=x")), "the top of the tree is not a directory");
	check_fails(LAYERS(LINES("f x text=1", "h .. to=x")),
		    "the top of the tree is not a directory");
}

static void test_hard_links(void **state)
{
	(void)state;
	check(LAYERS(LINES("f a text=1 mode=600 x:user.k=v", "d d"),
		     LINES("h d/b to=a mode=777 uid=9", "h c to=/d/../d/b")),
	      ROOT_OF("3") "f 0600 0:0 0 3 a =1 user.k=v\n"
			   "f 0600 0:0 0 3 c =1 user.k=v\n"
			   "d 0755 0:0 0 2 d\n"
			   "f 0600 0:0 0 3 d/b =1 user.k=v\n");
	/* Replacing or removing one name leaves the content of the others. */
	check(LAYERS(LINES("f a text=1", "h b to=a", "h c to=a"), LINES("f a text=new", "f .wh.c")),
	      ROOT "f 0644 0:0 0 1 a =new\n"
		   "f 0644 0:0 0 1 b =1\n");
	/* To a symbolic link itself, through linked directories, over a directory, to itself. */
	check(LAYERS(LINES("l s to=nowhere", "h t to=s", "d d", "f d/x text=1", "l dl to=d",
			   "h y to=dl/x", "h y to=y")),
	      ROOT_OF("3") "d 0755 0:0 0 2 d\n"
			   "f 0644 0:0 0 2 d/x =1\n"
			   "l 0777 0:0 0 1 dl ->d\n"
			   "l 0777 0:0 0 2 s ->nowhere\n"
			   "l 0777 0:0 0 2 t ->nowhere\n"
			   "f 0644 0:0 0 2 y =1\n");
	check_fails(LAYERS(LINES("h b to=a")), "hard link to \"a\", which does not exist");
	check_fails(LAYERS(LINES("h b to=../../etc/passwd")), "which does not exist");
	check_fails(LAYERS(LINES("d d", "h b to=d")), "hard link to the directory \"d\"");
	check_fails(LAYERS(LINES("h b to=/")), "does not exist");
}

static void test_paths(void **state)
{
	(void)state;
	check(LAYERS(LINES("f ../x text=1", "f /abs text=2", "f a/../../b text=3",
			   "f ./././c text=4", "f d//e/./f text=5", "f /../../../g text=6", "d h/",
			   "d h/i/..")),
	      ROOT_OF("4") "f 0644 0:0 0 1 abs =2\n"
			   "f 0644 0:0 0 1 b =3\n"
			   "f 0644 0:0 0 1 c =4\n"
			   "d 0755 0:0 0 3 d\n"
			   "d 0755 0:0 0 2 d/e\n"
			   "f 0644 0:0 0 1 d/e/f =5\n"
			   "f 0644 0:0 0 1 g =6\n"
			   "d 0755 0:0 0 2 h\n"
			   "f 0644 0:0 0 1 x =1\n");
	/* Names are bytes. */
	check(LAYERS(LINES("f %ff%fe text=1", "f a%0ab text=2", "f %c3%a4 text=3", "f %01 text=4")),
	      ROOT "f 0644 0:0 0 1 %01 =4\n"
		   "f 0644 0:0 0 1 a%0ab =2\n"
		   "f 0644 0:0 0 1 %c3%a4 =3\n"
		   "f 0644 0:0 0 1 %ff%fe =1\n");
}

/*
 * A path that links make longer and longer, at the limit of what is still to be walked and one
 * beyond.
 */
static void test_longest_walk(void **state)
{
	static const size_t limit = LAYER_PATH_MAX + LAYER_TARGET_MAX + 2;
	char first[64 + 2000] = "l a to=b", second[64 + LAYER_TARGET_MAX] = "l b to=";
	char file[LAYER_PATH_MAX] = "f a", name[201];
	cleanup_fd int out = memfd_create("image", MFD_CLOEXEC);
	struct err e = ERR_INIT;
	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (size_t i = 0; i < 1000; i++)
		memcpy(first + 8 + 2 * i, "/.", 3);
	for (size_t i = 0; i < 15; i++)
		snprintf(file + 3 + 201 * i, sizeof(file) - 3 - 201 * i, "/%s", name);
	/*
	 * At the second link: 1999 bytes of the first, a slash, 14 names with slashes between them.
	 */
	size_t rest = 1999 + 14 * 201, longest = limit - 2 - rest;
	memset(second + 7, 't', longest + 1);
	for (size_t i = 7; i < longest - 100; i += 2)
		memcpy(second + i, "./", 2);
	second[7 + longest] = '\0';
	assert_int_equal(render_lines(LAYERS(LINES(second, first, file)), "pax", out, &e), 0);
	second[7 + longest] = 't';
	second[7 + longest + 1] = '\0';
	check_fails(LAYERS(LINES(second, first, file)), "a path becomes longer than");
}

static void test_linked_parents(void **state)
{
	(void)state;
	/* What would be an escape on a host stays in the image. */
	check(LAYERS(LINES("d etc", "f etc/passwd text=old", "l abs to=/etc", "l up to=../../etc",
			   "f abs/passwd text=new", "f up/shadow text=s")),
	      ROOT_OF("3") "l 0777 0:0 0 1 abs ->/etc\n"
			   "d 0755 0:0 0 2 etc\n"
			   "f 0644 0:0 0 1 etc/passwd =new\n"
			   "f 0644 0:0 0 1 etc/shadow =s\n"
			   "l 0777 0:0 0 1 up ->../../etc\n");
	/* Links to links, relative to their own directory; missing targets are created. */
	check(LAYERS(LINES("l one to=d/two", "d d", "l d/two to=../three/./x/..",
			   "f one/f text=1")),
	      ROOT_OF("4") "d 0755 0:0 0 2 d\n"
			   "l 0777 0:0 0 1 d/two ->../three/./x/..\n"
			   "l 0777 0:0 0 1 one ->d/two\n"
			   "d 0755 0:0 0 3 three\n"
			   "f 0644 0:0 0 1 three/f =1\n"
			   "d 0755 0:0 0 2 three/x\n");
	/* A cleaned ".." removes a link's name, not its target. */
	check(LAYERS(LINES("d d/e", "l ln to=d/e", "f ln/../f text=1")),
	      ROOT_OF("3") "d 0755 0:0 0 3 d\n"
			   "d 0755 0:0 0 2 d/e\n"
			   "f 0644 0:0 0 1 f =1\n"
			   "l 0777 0:0 0 1 ln ->d/e\n");
	/* Whiteouts go through links, too. */
	check(LAYERS(LINES("d d", "f d/x text=1", "l ln to=d"), LINES("f ln/.wh.x")),
	      ROOT_OF("3") "d 0755 0:0 0 2 d\n"
			   "l 0777 0:0 0 1 ln ->d\n");
	check_fails(LAYERS(LINES("l a to=b", "l b to=a", "f a/x text=1")),
		    "symbolic links in a path");
	check_fails(LAYERS(LINES("l a to=f", "f f text=1", "f a/x text=1")), "is not a directory");
}

/* A chain of MERGE_SYMLINKS_MAX links is followed, one more is not. */
static void test_link_limit(void **state)
{
	(void)state;
	char lines[MERGE_SYMLINKS_MAX + 2][64];
	const char *list[MERGE_SYMLINKS_MAX + 4];
	size_t n = 0;
	for (int i = 0; i < MERGE_SYMLINKS_MAX; i++) {
		snprintf(lines[i], sizeof(lines[i]), "l l%d to=l%d", i, i + 1);
		list[n++] = lines[i];
	}
	list[n++] = "f l0/x text=1";
	list[n] = NULL;
	cleanup_fd int out = memfd_create("image", MFD_CLOEXEC);
	struct err e = ERR_INIT;
	assert_int_equal(render_lines(LAYERS(list), "pax", out, &e), 0);
	cleanup_free char *got = listing_of(out);
	assert_non_null(strstr(got, " l40/x =1\n"));
	snprintf(lines[n], sizeof(lines[n]), "l l%d to=l%d", MERGE_SYMLINKS_MAX,
		 MERGE_SYMLINKS_MAX + 1);
	list[n - 1] = lines[n];
	list[n++] = "f l0/x text=1";
	list[n] = NULL;
	check_fails(LAYERS(list), "more than 40 symbolic links");
}

/* A line with a path of the given length: components of @part bytes. */
static void path_line(char *out, size_t len, size_t part)
{
	memcpy(out, "f ", 2);
	for (size_t i = 0; i < len; i++)
		out[2 + i] = i % (part + 1) == part ? '/' : 'n';
	out[2 + len] = '\0';
}

static void test_name_limits(void **state)
{
	(void)state;
	char line[LAYER_PATH_MAX + 64];
	const char *list[] = { line, NULL };
	cleanup_fd int out = memfd_create("image", MFD_CLOEXEC);
	struct err e = ERR_INIT;
	path_line(line, TREE_NAME_MAX, TREE_NAME_MAX);
	assert_int_equal(render_lines(LAYERS(list), "pax", out, &e), 0);
	path_line(line, TREE_NAME_MAX + 1, TREE_NAME_MAX + 1);
	check_fails(LAYERS(list), "a file name is longer than 255 bytes");
	path_line(line, 2 * TREE_NAME_MAX + 3, TREE_NAME_MAX + 1);
	check_fails(LAYERS(list), "a file name is longer than 255 bytes");
	path_line(line, LAYER_PATH_MAX - 1, 200);
	assert_int_equal(ftruncate(out, 0), 0);
	assert_int_equal(render_lines(LAYERS(list), "pax", out, &e), 0);
	path_line(line, LAYER_PATH_MAX, 200);
	check_fails(LAYERS(list), "a name of more than 4095 bytes");
	/* TREE_DEPTH_MAX directories deep, and one more. */
	path_line(line, 2 * TREE_DEPTH_MAX - 1, 1);
	assert_int_equal(ftruncate(out, 0), 0);
	assert_int_equal(render_lines(LAYERS(list), "pax", out, &e), 0);
	path_line(line, 2 * TREE_DEPTH_MAX + 1, 1);
	check_fails(LAYERS(list), "nested more than 1024 deep");
}

static void test_target_limits(void **state)
{
	(void)state;
	char line[LAYER_TARGET_MAX + 64] = "l a to=";
	const char *list[] = { line, NULL };
	memset(line + 7, 't', LAYER_TARGET_MAX);
	cleanup_fd int out = memfd_create("image", MFD_CLOEXEC);
	struct err e = ERR_INIT;
	assert_int_equal(render_lines(LAYERS(list), "pax", out, &e), 0);
	line[7 + LAYER_TARGET_MAX] = 't';
	check_fails(LAYERS(list), "longer than 4095 bytes");
	const char *list2[] = { line, "f a/x", NULL };
	line[7 + LAYER_TARGET_MAX] = '\0';
	check_fails(LAYERS(list2), "a file name is longer than 255 bytes");
}

static void test_other_formats(void **state)
{
	(void)state;
	static const char long_name[] =
		"f nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn/"
		"mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm text=2";
	const layer_lines *layers = LAYERS(
		LINES("d a", "f a/x text=1 uid=1000", "l s to=a/x", "h h to=a/x", long_name));
	cleanup_free char *want = NULL;
	static const char *const formats[] = { "pax", "ustar", "gnutar" };
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		cleanup_fd int out = memfd_create("image", MFD_CLOEXEC);
		struct err e = ERR_INIT;
		assert_int_equal(render_lines(layers, formats[i], out, &e), 0);
		char *got = listing_of(out);
		if (want)
			assert_string_equal(got, want);
		free(want);
		want = got;
	}
}

/* What looks like an attack on whoever unpacks it is a tree like any other. */
static void test_odd_layers(void **state)
{
	(void)state;
	/* A directory of a lower layer that is a link: entries go where it leads, in the image. */
	check(LAYERS(LINES("l dev to=/etc"), LINES("f dev/passwd text=1", "c dev/null dev=1,3")),
	      ROOT_OF("3") "l 0777 0:0 0 1 dev ->/etc\n"
			   "d 0755 0:0 0 2 etc\n"
			   "c 0644 0:0 0 1 etc/null 1,3\n"
			   "f 0644 0:0 0 1 etc/passwd =1\n");
	/* A link to what the next layer removes; a link in place of the directory it leads into. */
	check(LAYERS(LINES("f a text=1"), LINES("h b to=a"), LINES("f .wh.a")),
	      ROOT "f 0644 0:0 0 1 b =1\n");
	check(LAYERS(LINES("f d/x text=1", "f d/y text=2"), LINES("h d to=d/x")),
	      ROOT "f 0644 0:0 0 1 d =1\n");
	check_fails(LAYERS(LINES("f a text=1"), LINES("f .wh.a", "h b to=a")),
		    "hard link to \"a\", which does not exist");
	/* One name, all types. */
	check(LAYERS(LINES("f a text=1", "d a", "f a/x text=2", "l a to=a", "p a", "c a dev=1,2",
			   "f a text=3", "h a to=a")),
	      ROOT "f 0644 0:0 0 1 a =3\n");
	/* Whiteouts as directories, of nothing, of the top. */
	check(LAYERS(LINES("f a/x text=1"), LINES("d .wh.a", "f .wh.a/y text=2")),
	      ROOT_OF("3") "d 0755 0:0 0 2 .wh.a\n"
			   "f 0644 0:0 0 1 .wh.a/y =2\n");
	check(LAYERS(LINES("f a text=1"), LINES("f ../.wh.a", "f x/../.wh..wh..opq")), ROOT);
	check_fails(LAYERS(LINES("l l to=l", "f l/.wh.a")), "symbolic links in a path");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_attributes),    fixture_test(test_whiteouts),
		fixture_test(test_opaque),        fixture_test(test_replacement),
		fixture_test(test_hard_links),    fixture_test(test_paths),
		fixture_test(test_longest_walk),  fixture_test(test_linked_parents),
		fixture_test(test_link_limit),    fixture_test(test_name_limits),
		fixture_test(test_target_limits), fixture_test(test_other_formats),
		fixture_test(test_odd_layers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
