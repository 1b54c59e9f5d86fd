/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. The images on their way are a list, each once. Of one after the other, the
 * dependencies are looked for: what the store has is noted, what is in the list is referred to, the
 * rest is got and put at the end, so that the list goes level by level. Only when it is complete
 * are they imported, the lowest first, for an image is in the store with all that it is on top of.
 *
 * Each holds the lock of its import as long as it is in the list. Nobody waits for another's while
 * he has one (import_begin_nested()), so two lists in two processes do not wait for each other.
 */
#include "images/fetch/dependencies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "images/fetch/discovered.h"
#include "images/store/catalog.h"
#include "images/store/find.h"

enum job_state {
	JOB_OPEN,      /* its documents can be read, and nothing of it is in the store */
	JOB_IN_IMPORT, /* those below it are imported; whoever wants it now is one of them */
	JOB_DONE,      /* it is in the store */
};

/* One image on its way. */
struct job {
	struct importer *importer;
	const char *url;                  /* that it came from, or NULL */
	const struct job *above;          /* who wanted it first; NULL: the user */
	const struct aci_dependency *why; /* as what: of above's; NULL likewise */
	struct discovered *found;         /* owned; NULL likewise */
	struct answer *below;             /* owned; one for each of its dependencies */
	enum job_state state;
};

/* What a dependency is. */
struct answer {
	struct job *job;  /* on its way; NULL: */
	struct digest id; /* in the store */
};

/* The first is the user's. More are not on top of each other (RECORD_BELOW_MAX). */
struct jobs {
	struct job list[RECORD_BELOW_MAX + 1];
	size_t n;
};

static void jobs_free(struct jobs *all)
{
	for (size_t i = 0; all && i < all->n; i++) {
		struct job *j = &all->list[i];
		free(j->below);
		if (j->found)
			discovered_deinit(j->found);
		free(j->found);
	}
	free(all);
}
DEFINE_FREEP(jobs);
#define cleanup_jobs CLEANUP(jobs_freep)

static int too_many(struct err *e)
{
	return err_set(e, -E2BIG, "the image is on top of more than %zu others", RECORD_BELOW_MAX);
}

/* ---- what is below ---- */

/* The same name with the same labels, in whatever order, and key. */
static bool is_same(const struct aci_dependency *a, const struct aci_dependency *b)
{
	return strcmp(a->name.name, b->name.name) == 0 && strcmp(a->key, b->key) == 0 &&
	       !acname_missing(&a->name, &b->name) && !acname_missing(&b->name, &a->name);
}

static struct job *find_job(struct jobs *all, const struct aci_dependency *d)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->list[i].why && is_same(all->list[i].why, d))
			return &all->list[i];
	return NULL;
}

/* The name with its labels, for messages. The text ends with a NUL. 0 or -errno. */
static int write_name(const struct aci_dependency *d, struct buf *out)
{
	buf_init(out, IMAGE_NAME_MAX + ACNAME_LABELS_MAX * sizeof(struct acname_label));
	int r = acname_format(&d->name, out);
	return r == 0 ? buf_append(out, "", 1) : r;
}

static int check_above(const struct job *above, struct err *e)
{
	size_t depth = 0;
	for (; above->above; above = above->above)
		depth++;
	if (depth >= DEPENDENCIES_DEPTH_MAX)
		return err_set(e, -ELOOP, "images depend on each other more than %zu deep",
			       DEPENDENCIES_DEPTH_MAX);
	return 0;
}

/* An image that is called otherwise below than on top is on top of itself all the same. */
static int check_loop(const struct job *above, const char *url, struct err *e)
{
	for (; above; above = above->above)
		if (above->url && strcmp(above->url, url) == 0)
			return err_set(e, -ELOOP, "the image depends on itself");
	return 0;
}

/* Gets a dependency that the store has not. */
static int add_job(struct jobs *all, const struct job *above, const struct aci_dependency *d,
		   struct job **ret, struct err *e)
{
	const struct importer *i = above->importer;
	struct fetch_request q = *i->request;
	int r = check_above(above, e);
	if (r == 0 && all->n == ARRAY_SIZE(all->list))
		r = too_many(e);
	if (r < 0)
		return r;
	/* With a key, what the store has under this name is not the one that is wanted. */
	q.policy = d->key[0] ? PULL_UPDATE : PULL_NEW;
	q.signature = NULL;
	q.expected = &d->name;
	struct discovered *found = malloc(sizeof(*found));
	if (!found)
		return err_sys(e, -ENOMEM, "images");
	struct job *j = &all->list[all->n++];
	*j = (struct job){ .above = above, .why = d, .found = found };
	fetch_note(&q.options, "searching for app image %s", d->name.name);
	r = discovered_open(found, i->store, &q, true, e);
	j->importer = &found->importer;
	j->url = found->url.url;
	*ret = j;
	return r == 0 ? check_loop(above, j->url, e) : r;
}

static int look_for(struct jobs *all, const struct job *above, const struct aci_dependency *d,
		    struct answer *ret, struct err *e)
{
	const struct importer *i = above->importer;
	const struct fetch_options *o = &i->request->options;
	bool never = i->request->policy == PULL_NEVER;
	cleanup_buf struct buf name;
	int r = write_name(d, &name);
	if (r < 0)
		return err_sys(e, r, "cannot write its name");
	r = find_appc(i->store, &d->name, d->key, !o->insecure_image, &ret->id, never ? e : NULL);
	if (r == 0)
		fetch_note(o, "using image from local store for image name %s", buf_data(&name));
	if (r == 0 || never)
		return r;
	ret->job = find_job(all, d);
	return ret->job ? 0 : add_job(all, above, d, &ret->job, e);
}

/* As what the image is wanted, from the user's on. */
static int say_way(const struct job *j, const struct aci_dependency *d, struct err *e)
{
	int r = err_context(e, "dependency %s", d->name.name);
	for (; j->why; j = j->above)
		r = err_context(e, "dependency %s", j->why->name.name);
	return r;
}

static int look_below(struct jobs *all, struct job *j, struct err *e)
{
	const struct aci_manifest *m = &j->importer->aci;
	int r = 0;
	j->below = calloc(m->n_dependencies + 1, sizeof(*j->below));
	if (!j->below)
		return err_sys(e, -ENOMEM, "images");
	for (size_t k = 0; r == 0 && k < m->n_dependencies; k++) {
		r = look_for(all, j, &m->dependencies[k], &j->below[k], e);
		if (r < 0)
			say_way(j, &m->dependencies[k], e);
	}
	return r;
}

/* ---- import ---- */

/* The images below, the lowest first, none twice. */
struct below {
	struct digest ids[RECORD_BELOW_MAX];
	size_t n;
};

static int add_below(struct below *b, const struct digest *id, struct err *e)
{
	for (size_t i = 0; i < b->n; i++)
		if (digest_equal(&b->ids[i], id))
			return 0;
	if (b->n == RECORD_BELOW_MAX)
		return too_many(e);
	b->ids[b->n++] = *id;
	return 0;
}

/* Adds what the dependency @id is on top of, and itself. */
static int add_dependency(struct store *s, struct below *b, const struct digest *id, struct err *e)
{
	CLEANUP(record_deinit) struct record r;
	record_init(&r);
	int x = catalog_get(s, id, &r, e);
	if (x == STORE_MISSING)
		return err_set(e, -ENOENT, "it was removed from the store meanwhile (try again)");
	if (x == 0 && r.kind != IMAGE_ACI)
		return err_set(e, -EOPNOTSUPP, "it is not an appc image");
	for (size_t i = 0; x == 0 && i < r.n_below; i++)
		x = add_below(b, &r.below[i], e);
	return x < 0 ? x : add_below(b, id, e);
}

static int check_answer(const struct importer *i, const struct aci_dependency *d,
			const struct digest *id, struct err *e)
{
	if (find_is_appc(i->store, id, &d->name, d->key, !i->request->options.insecure_image))
		return 0;
	cleanup_buf struct buf name;
	int r = write_name(d, &name);
	return err_set(e, -EBADMSG,
		       "what was found under this name is another image: not \"%.300s\"%s%.16s",
		       r == 0 ? buf_data(&name) : d->name.name,
		       d->key[0] ? " with the ID sha512-" : "", d->key);
}

static int import_job(struct job *j, struct err *e);

static int import_below(struct job *j, size_t k, struct below *b, struct err *e)
{
	const struct answer *a = &j->below[k];
	const struct digest *id = a->job ? &a->job->importer->found->image.id : &a->id;
	int r = a->job ? import_job(a->job, e) : 0;
	if (r == 0 && a->job)
		r = check_answer(j->importer, &j->importer->aci.dependencies[k], id, e);
	return r == 0 ? add_dependency(j->importer->store, b, id, e) : r;
}

static int import_job(struct job *j, struct err *e)
{
	const struct aci_manifest *m = &j->importer->aci;
	struct below below = { .n = 0 };
	int r = 0;
	if (j->state == JOB_DONE)
		return 0;
	if (j->state == JOB_IN_IMPORT)
		return err_set(e, -ELOOP, "the image depends on itself");
	j->state = JOB_IN_IMPORT;
	for (size_t k = 0; r == 0 && k < m->n_dependencies; k++) {
		r = import_below(j, k, &below, e);
		if (r < 0)
			err_context(e, "dependency %s", m->dependencies[k].name.name);
	}
	if (r == 0)
		r = importer_finish(j->importer, below.ids, below.n, e);
	j->state = JOB_DONE;
	return r;
}

int dependencies_bring(struct importer *top, const char *url, struct err *e)
{
	cleanup_jobs struct jobs *all = calloc(1, sizeof(*all));
	int r = 0;
	if (!all)
		return err_sys(e, -ENOMEM, "images");
	all->list[all->n++] = (struct job){ .importer = top, .url = url };
	for (size_t i = 0; r == 0 && i < all->n; i++)
		r = look_below(all, &all->list[i], e);
	return r == 0 ? import_job(&all->list[0], e) : r;
}
