#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What people do with files, each program in a directory of its own, and what has become of it: the same wherever a file system
# does what it should.
#   use_files.sh DIR FILES    in DIR, which has file_calls.py and repository.git; FILES: how many the large tree has
# Writes DIR/report/PROGRAM: what it printed, its exit status, and the files that it left.
set -u
export LC_ALL=C TZ=UTC HOME=/tmp GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0
umask 022
cd "$1" || exit 1
files=$2
top=$PWD
mkdir -p report work

# What is in a directory: kind, mode, owner, links and size of all but directories, targets; with "times" when it was changed.
look() { # DIR [times]
	local time=
	[ $# -eq 1 ] || time=' %T@'
	(
		cd "$1" || exit 1
		find . -path '*/.git/*' -prune -o -type d -printf "%p %y %m %U %G$time\n" -o -printf "%p %y %m %U %G %n %s %l$time\n" | sort
		find . -path '*/.git/*' -prune -o -type f -print0 | sort -z | xargs -0r sha256sum
		getfattr -R -d -h . 2>/dev/null
	)
}

# program NAME COMMAND...: as it is, in work/NAME.
program() {
	local name=$1
	shift
	mkdir "work/$name"
	(
		cd "work/$name" || exit 1
		"$@" 2>&1
		echo "exit status $?"
	) >"report/$name"
	look "work/$name" >>"report/$name"
}

# Names, links, kinds, times, modes and attributes that a copy can lose.
special() { # DIR
	mkdir -p "$1/sub/deep"
	(
		cd "$1" || exit 1
		echo content >plain
		ln plain hard
		ln plain sub/hard
		ln -s plain soft
		ln -s /nowhere dangling
		ln -s . circle
		mkfifo fifo
		truncate -s 10M sparse
		printf end | dd of=sparse bs=1M seek=8 conv=notrunc 2>/dev/null
		touch 'a name with blanks' $'new\nline' $'\xff\xfe' "$(printf 'long%.0s' {1..60})" -- '-rf' '*'
		head -c 300000 /dev/zero | tr '\0' 'x' >sub/deep/large
		chmod 0 sub/deep/large
		chmod 1777 sub
		chmod 501 sub/deep
		chown 12:34 plain
		chown -h 56:78 soft
		[ -z "$(command -v setfattr)" ] || setfattr -n user.mark -v value plain
		find . -depth -exec touch -h -d '2001-02-03 04:05:06.123456789' {} +
	)
}

git_clone() {
	git -c safe.directory='*' clone -q "$top/repository.git" clone &&
		git -c safe.directory='*' clone -q --no-local "file://$top/repository.git" second &&
		cd clone && git status --porcelain && git fsck --no-progress 2>&1 &&
		git ls-files -s | sha256sum && git -C ../second ls-files -s | sha256sum
}

git_work() {
	export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
	export GIT_AUTHOR_DATE='2001-02-03 04:05:06' GIT_COMMITTER_DATE='2001-02-03 04:05:06'
	git init -q . && echo one >file && mkdir dir && echo two >dir/file && git add . && git commit -qm first &&
		git mv file moved && git commit -qam second && git checkout -q -b branch HEAD^ && echo three >>dir/file &&
		git commit -qam third && git merge -q -m merge master && git gc -q && git fsck --no-progress && git log --format=%H
}

copy() {
	special from
	cp -a from to
	look from times >from.list
	look to times >to.list
	cmp from.list to.list && cp --sparse=always from/sparse sparse &&
		[ "$(du -k sparse | cut -f 1)" -lt 3000 ]
}

archive() {
	special from
	tar --sparse --sort=name -C from -cf archive.tar . && mkdir to && tar -C to -xpf archive.tar
	look from times >from.list
	look to times >to.list
	cmp from.list to.list
	rm archive.tar
}

edit() {
	seq 1000 >numbers
	sed -i 's/^5/five/' numbers
	truncate -s 2000 numbers
	printf 'in the middle' | dd of=numbers bs=1 seek=1000 conv=notrunc 2>/dev/null
	fallocate -l 100000 room && fallocate -p -o 4096 -l 8192 room && stat -c %s room
	sort -R -S 1M --random-source=/dev/zero -T . numbers >sorted
	split -l 100 numbers part.
	install -D -m 640 -o 12 -g 34 numbers dir/installed
	cp numbers old && mv -f --backup=numbered numbers old && ls
	mktemp -d ./tmp.XXXXXX | wc -l
	rmdir tmp.*
}

database() {
	cat >use.py <<-'END'
		import sqlite3
		for mode in ("delete", "wal"):
		    db = sqlite3.connect(mode + ".db")
		    print(db.execute("pragma journal_mode=" + mode).fetchone())
		    db.execute("create table t (n integer primary key, text)")
		    other = sqlite3.connect(mode + ".db", timeout=0)
		    for i in range(20):
		        with db:
		            db.executemany("insert into t (text) values (?)", [("x" * 100,)] * 50)
		        print(other.execute("select count(*) from t").fetchone())
		    db.execute("begin immediate")
		    try:
		        other.execute("begin immediate")
		    except sqlite3.OperationalError as e:
		        print(e)
		    db.execute("commit")
		    print(db.execute("pragma integrity_check").fetchone())
		    db.close()
		    other.close()
	END
	/usr/bin/python3 use.py
}

lock() {
	touch file
	flock file flock -n file true
	echo "held: $?"
	flock -s file flock -s -n file true
	echo "shared: $?"
	flock -n file true
	echo "free: $?"
}

many() {
	local i
	mkdir tree
	for ((i = 0; i < files; i++)); do echo "tree/$((i / 500))/$i"; done >names
	cut -d / -f 1,2 names | uniq | xargs mkdir && xargs touch <names
	find tree -type f | wc -l
	cp -a tree copy && find copy -type f | wc -l
	mv copy moved && find moved -name '*7' | wc -l
	chmod -R o-r moved && find moved ! -perm -o=r | wc -l
	rm -rf moved tree
	ls
	rm names
}

calls() {
	mkdir dir
	/usr/bin/python3 "$top/file_calls.py" dir 1234
}

program git-clone git_clone
program git git_work
program cp copy
program tar archive
program sed,dd,sort,install edit
program sqlite database
program flock lock
program "touch,cp,mv,rm" many
program calls calls
rm -rf work
