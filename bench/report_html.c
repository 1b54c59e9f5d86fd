/* SPDX-License-Identifier: Apache-2.0 */
/* The report for people: one page that needs nothing else. */
#include <stdio.h>
#include <string.h>

#include "bench/report.h"
#include "bench/suites.h"

/* A failed append is remembered, and makes all later ones do nothing. */
struct page {
	struct buf *out;
	int error;
};

static void put(struct page *p, const char *html)
{
	if (p->error == 0)
		p->error = buf_puts(p->out, html);
}

/* Text from anywhere: nothing in it is markup. */
static void put_text(struct page *p, const char *text)
{
	for (; *text; text++) {
		char c[2] = { *text, '\0' };
		switch (*text) {
		case '<':
			put(p, "&lt;");
			break;
		case '>':
			put(p, "&gt;");
			break;
		case '&':
			put(p, "&amp;");
			break;
		case '"':
			put(p, "&quot;");
			break;
		case '\'':
			put(p, "&#39;");
			break;
		default:
			put(p, c);
		}
	}
}

static void put_element(struct page *p, const char *tag, const char *text)
{
	put(p, "<");
	put(p, tag);
	put(p, ">");
	put_text(p, text);
	put(p, "</");
	put(p, tag);
	put(p, ">");
}

void report_number(double value, char *out, size_t size)
{
	const char *suffix = value >= 999500 ? " M" : value >= 9995 ? " k" : "";
	value /= suffix[0] == '\0' ? 1 : suffix[1] == 'k' ? 1e3 : 1e6;
	int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : value >= 0.9995 ? 2 : 3;
	snprintf(out, size, "%.*f%s", value == 0 ? 0 : digits, value, suffix);
}

static void put_number(struct page *p, double value)
{
	char text[64];
	report_number(value, text, sizeof(text));
	put(p, text);
}

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	"<title>husk-bench: pods compared</title>\n<style>\n"
	"body{font:15px/1.45 sans-serif;max-width:72em;margin:2em auto;padding:0 1em;color:#222}\n"
	"h2{margin-top:2em;border-bottom:1px solid #bbb}\n"
	"h2::first-letter{text-transform:uppercase}\n"
	"table{border-collapse:collapse;margin:1em 0}\n"
	"th,td{border:1px solid #ccc;padding:.35em .6em;text-align:left;vertical-align:top}\n"
	"th{background:#f2f2f2}\n"
	"td.n{text-align:right;white-space:nowrap}\n"
	"td.none{color:#777;font-size:85%}\n"
	"table.figures th:first-child{width:26em}table.figures th,table.figures td{min-width:7em}\n"
	"small,.how{display:block;color:#666;font-size:85%;font-weight:normal}\n"
	".ratio{color:#05a}\n"
	".warn{background:#fff3cd;border:1px solid #e0c060;padding:.6em 1em}\n"
	".plots svg{width:340px;height:auto;margin:.4em}\n"
	"</style></head><body>\n";

static const char reading[] =
	"<p>Each figure is the <b>median</b> of the rounds; below it the smallest and the largest "
	"value, and the <span class=\"ratio\">ratio</span> of its median to that of the first "
	"column (×2 is twice the number). Contenders took turns in each round. Differences "
	"that are smaller than the spread mean nothing. An arrow tells which way is better: ↓ "
	"less, ↑ more; k is thousands, M millions. What could not be measured is blank, with the "
	"reason.</p>\n"
	"<p>runc, crun and runsc are called bare: no engine above them fetches, unpacks and "
	"mounts images or keeps logs, and they get the container that their <code>spec</code> "
	"proposes, which has no filter of system calls. husk does all of that, so it is in its "
	"figures. host is no pod: the same programs on the host itself.</p>\n"
	"<p>In the drawings, bars are medians, and whiskers reach from the smallest to the "
	"largest value.</p>\n";

static void put_facts(struct page *p, const struct results *r)
{
	put(p, "<table>\n");
	for (size_t i = 0; i < r->n_facts; i++) {
		put(p, "<tr>");
		put_element(p, "th", r->facts[i].title);
		put_element(p, "td", r->facts[i].text);
		put(p, "</tr>\n");
	}
	put(p, "</table>\n");
}

static void put_columns(struct page *p, const struct results *r)
{
	put(p,
	    "<table>\n<tr><th>Column</th><th>Version</th><th>Kernel that a pod sees</th></tr>\n");
	for (size_t i = 0; i < r->n_columns; i++) {
		const struct column *c = &r->columns[i];
		put(p, "<tr>");
		put_element(p, "th", c->title);
		if (c->why[0] != '\0') {
			put(p, "<td colspan=\"2\" class=\"none\">not measured: ");
			put_text(p, c->why);
			put(p, "</td>");
		} else {
			put_element(p, "td", c->version);
			put_element(p, "td", c->kernel);
		}
		put(p, "</tr>\n");
	}
	put(p, "</table>\n");
}

static void put_warnings(struct page *p, const struct results *r)
{
	if (r->partial)
		put(p, "<p class=\"warn\"><b>Partial:</b> this run was interrupted. What it had "
		       "measured by then is here; the rest is blank.</p>\n");
	for (size_t i = 0; i < r->n_columns; i++) {
		if (!r->columns[i].emulated)
			continue;
		put(p, "<p class=\"warn\"><b>");
		put_text(p, r->columns[i].title);
		put(p, "</b> ran without hardware virtualization: its processor is software "
		       "(QEMU's TCG), many times slower than a real one. Its figures, those of "
		       "the processor above all, say nothing about a machine with KVM.</p>\n");
	}
}

static void put_cell(struct page *p, const struct results *r, const struct shown_row *row, size_t i)
{
	const struct cell *cell = &row->cells[i];
	double ratio;
	if (cell->n == 0) {
		put(p, "<td class=\"none\">");
		put_text(p, cell->why[0] != '\0' ? cell->why : r->columns[i].why);
		put(p, "</td>");
		return;
	}
	struct stats s = stats_of(cell->v, cell->n);
	put(p, "<td class=\"n\">");
	put_number(p, s.median);
	if (i > 0 && results_ratio(row, i, &ratio)) {
		put(p, " <span class=\"ratio\">×");
		put_number(p, ratio);
		put(p, "</span>");
	}
	put(p, "<small>");
	if (cell->n > 1) {
		put_number(p, s.min);
		put(p, " – ");
		put_number(p, s.max);
	} else {
		put(p, "once");
	}
	put(p, "</small>");
	if (cell->why[0] != '\0') {
		put(p, "<small>then: ");
		put_text(p, cell->why);
		put(p, "</small>");
	}
	put(p, "</td>");
}

static void put_row(struct page *p, const struct results *r, const struct shown_row *row)
{
	put(p, "<tr><th>");
	put_text(p, row->row->title);
	put(p, ", ");
	put_text(p, row->row->unit);
	put(p, row->row->less_is_better ? " ↓" : " ↑");
	put(p, "<span class=\"how\">");
	put_text(p, row->row->how);
	put(p, "</span></th>");
	for (size_t i = 0; i < r->n_columns; i++)
		put_cell(p, r, row, i);
	put(p, "</tr>\n");
}

/* The rows from @first on that belong to one suite; yields the one behind them. */
static size_t put_suite(struct page *p, const struct results *r, char *const *plots, size_t first)
{
	const char *suite = r->rows[first].suite;
	size_t end = first;
	put(p, "<h2 id=\"");
	put_text(p, suite);
	put(p, "\">");
	put_text(p, suite);
	put(p, "</h2>\n");
	put_element(p, "p", suites_about(suite));
	put(p, "\n<table class=\"figures\">\n<tr><th></th>");
	for (size_t i = 0; i < r->n_columns; i++)
		put_element(p, "th", r->columns[i].title);
	put(p, "</tr>\n");
	for (; end < r->n_rows && strcmp(r->rows[end].suite, suite) == 0; end++)
		put_row(p, r, &r->rows[end]);
	put(p, "</table>\n<div class=\"plots\">\n");
	for (size_t i = first; plots && i < end; i++)
		put(p, plots[i] ? plots[i] : "");
	put(p, "</div>\n");
	return end;
}

int report_html(const struct results *r, char *const *plots, struct buf *out)
{
	struct page p = { .out = out };
	put(&p, head);
	put(&p, "<h1>Pods compared</h1>\n");
	put_warnings(&p, r);
	put_facts(&p, r);
	put_columns(&p, r);
	put_element(&p, "h2", "How to read this");
	put(&p, reading);
	if (!plots)
		put(&p, "<p class=\"warn\">There are no drawings: gnuplot was not found. "
			"<code>apt-get install gnuplot-nox</code>, then run husk-bench "
			"again.</p>\n");
	for (size_t i = 0; i < r->n_rows;)
		i = put_suite(&p, r, plots, i);
	put(&p, "<p><small>Made by husk-bench. All values are in results.json and results.csv "
		"beside this page.</small></p>\n</body></html>\n");
	return p.error;
}
